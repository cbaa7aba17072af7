#ifndef GIFREEL_CCURL_H
#define GIFREEL_CCURL_H

#include <curl/curl.h>

#endif

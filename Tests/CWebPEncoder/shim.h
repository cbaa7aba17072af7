#ifndef GIFREEL_CWEBPENCODER_H
#define GIFREEL_CWEBPENCODER_H

#include <webp/encode.h>

#endif

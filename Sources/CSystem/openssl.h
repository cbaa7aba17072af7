#ifndef GIFREEL_CSYSTEM_OPENSSL_H
#define GIFREEL_CSYSTEM_OPENSSL_H

// The digests of OpenSSL 3.

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#endif

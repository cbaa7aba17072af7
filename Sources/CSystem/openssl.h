#ifndef GIFREEL_CSYSTEM_OPENSSL_H
#define GIFREEL_CSYSTEM_OPENSSL_H

// The digests of OpenSSL 3.

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stddef.h>

/// Writes the 20 bytes of a SHA-1. Returns 1, or 0 on failure.
static inline int copenssl_sha1(const void *bytes, size_t count, unsigned char *digest) {
    unsigned int length = 0;
    return EVP_Digest(bytes, count, digest, &length, EVP_sha1(), NULL) == 1 && length == 20;
}

#endif

#ifndef GIFREEL_CSYSTEM_OPENSSL_H
#define GIFREEL_CSYSTEM_OPENSSL_H

// OpenSSL 3 as a TLS client, and what Swift cannot import because OpenSSL defines it as a macro.

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stddef.h>

/// A context of a TLS 1.2 or 1.3 client that verifies its peer, or null without memory.
static inline SSL_CTX *copenssl_create_context(void) {
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    if (context == NULL) return NULL;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    // A write may be repeated from a buffer that has moved.
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return context;
}

/// Names the host of the peer, for its certificate and, unless it is an address, for SNI. Returns 1, or 0 on failure.
static inline int copenssl_set_peer(SSL *connection, const char *host) {
    X509_VERIFY_PARAM *parameters = SSL_get0_param(connection);
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, host) == 1) return 1;
    ERR_clear_error();
    return SSL_set1_host(connection, host) == 1 && SSL_set_tlsext_host_name(connection, host) == 1;
}

/// Writes the 20 bytes of a SHA-1. Returns 1, or 0 on failure.
static inline int copenssl_sha1(const void *bytes, size_t count, unsigned char *digest) {
    unsigned int length = 0;
    return EVP_Digest(bytes, count, digest, &length, EVP_sha1(), NULL) == 1 && length == 20;
}

#endif

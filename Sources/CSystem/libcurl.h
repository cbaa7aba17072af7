#ifndef GIFREEL_CSYSTEM_LIBCURL_H
#define GIFREEL_CSYSTEM_LIBCURL_H

// libcurl sets and reads its options with variadic functions and macros, which Swift cannot import. One inline function per type
// of argument.

#include <curl/curl.h>
#include <openssl/ssl.h>
#include <stdbool.h>

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl copies the text.
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

/// The list is not copied and must outlive the transfer.
static inline CURLcode ccurl_set_headers(CURL *easy, struct curl_slist *headers) {
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/// `buffer` has CURL_ERROR_SIZE bytes and must outlive the handle.
static inline CURLcode ccurl_set_error_buffer(CURL *easy, char *buffer) {
    return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

/// The callback receives each piece of the body.
static inline CURLcode ccurl_set_write(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
}

/// The callback provides each piece of a request body.
static inline CURLcode ccurl_set_read(CURL *easy, curl_read_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_READFUNCTION, callback);
}

/// The callback moves to another position of the request body, because a request is repeated.
static inline CURLcode ccurl_set_seek(CURL *easy, curl_seek_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// The callback receives each line of a response's head.
static inline CURLcode ccurl_set_header(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, callback);
}

/// The callback replaces socket(2) and receives the address of the connection.
static inline CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

/// The callback runs on a new or reused connection directly before the request is sent.
static inline CURLcode ccurl_set_prerequest(CURL *easy, curl_prereq_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static CURLcode ccurl_set_modes(CURL *easy, void *context, void *unused) {
    (void)easy, (void)unused;
    SSL_CTX_set_mode((SSL_CTX *)context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return CURLE_OK;
}

/// For curl_easy_send: over TLS, a write may be repeated from a buffer that has moved.
static inline CURLcode ccurl_permit_moving_writes(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_SSL_CTX_FUNCTION, ccurl_set_modes);
}

/// Whether bytes wait on a used TLS connection, for the callback before a request. Tickets precede the first response, so these
/// are rarely bytes of the protocol.
///
/// OpenSSL must not read here: its reads pass through libcurl, which outside of its own calls crashes if the socket fails.
static inline bool ccurl_has_unread_input(CURL *easy, bool socket_has_input) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL || session->internals == NULL
        || session->backend != CURLSSLBACKEND_OPENSSL) {
        return false;
    }
    return socket_has_input || SSL_has_pending((const SSL *)session->internals) == 1;
}

/// The socket of a handle that only connects.
static inline CURLcode ccurl_get_socket(CURL *easy, curl_socket_t *socket) {
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, socket);
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// The finished transfer and its result; NULL if `message` reports something else.
static inline CURL *ccurl_finished(const CURLMsg *message, CURLcode *result) {
    if (message->msg != CURLMSG_DONE) return NULL;
    *result = message->data.result;
    return message->easy_handle;
}

/// The address in a `struct curl_sockaddr`: `addrlen` bytes, which may be more than `sizeof(struct sockaddr)`.
static inline const struct sockaddr *ccurl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

// Macros that Swift does not import.
static const long ccurl_global_all = CURL_GLOBAL_ALL;
static const curl_socket_t ccurl_bad_socket = CURL_SOCKET_BAD;

#endif

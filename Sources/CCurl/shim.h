#ifndef GIFREEL_CCURL_H
#define GIFREEL_CCURL_H

// libcurl sets and gets its options with variadic functions and macros, which Swift cannot import.
// One inline function a type of argument; nothing else is decided here.

#include <curl/curl.h>

static inline CURLcode ccurl_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}

/// libcurl keeps its own copy of the text.
static inline CURLcode ccurl_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}

/// The list is not copied: it has to live as long as the transfer.
static inline CURLcode ccurl_set_headers(CURL *easy, struct curl_slist *headers) {
    return curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
}

/// `buffer` holds CURL_ERROR_SIZE bytes and has to live as long as the handle.
static inline CURLcode ccurl_set_error_buffer(CURL *easy, char *buffer) {
    return curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, buffer);
}

/// Called with each piece of the body.
static inline CURLcode ccurl_set_write(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, callback);
}

/// Called for each piece of a body to send.
static inline CURLcode ccurl_set_read(CURL *easy, curl_read_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_READFUNCTION, callback);
}

/// Called where a body has to be sent from another position, because a request is repeated.
static inline CURLcode ccurl_set_seek(CURL *easy, curl_seek_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, callback);
}

static inline CURLcode ccurl_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}

/// Called with each line of a response's head.
static inline CURLcode ccurl_set_header(CURL *easy, curl_write_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, callback);
}

/// Called in place of socket(2), with the address that is about to be connected to.
static inline CURLcode ccurl_set_open_socket(CURL *easy, curl_opensocket_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, callback);
}

/// Called on a connection, new or used before, just before the request is sent on it.
static inline CURLcode ccurl_set_prerequest(CURL *easy, curl_prereq_callback callback, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PREREQDATA, context);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, callback);
}

static inline CURLcode ccurl_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLcode ccurl_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}

static inline CURLMcode ccurl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

/// The finished transfer and its result, or null where `message` tells of something else.
static inline CURL *ccurl_finished(const CURLMsg *message, CURLcode *result) {
    if (message->msg != CURLMSG_DONE) return NULL;
    *result = message->data.result;
    return message->easy_handle;
}

/// The address behind a `struct curl_sockaddr`: `addrlen` bytes, which may be more than a `struct sockaddr` has.
static inline const struct sockaddr *ccurl_address(const struct curl_sockaddr *address) {
    return &address->addr;
}

// Macros that Swift does not import.
static const long ccurl_global_all = CURL_GLOBAL_ALL;
static const curl_socket_t ccurl_bad_socket = CURL_SOCKET_BAD;

#endif

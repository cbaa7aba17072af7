#ifndef GIFREEL_CSYSTEM_HIREDIS_H
#define GIFREEL_CSYSTEM_HIREDIS_H

// The parser of hiredis, without its sockets: the caller owns the connection, because hiredis 0.14 of
// Debian 12 has no TLS and cannot bound a pipeline by a deadline.

#include <hiredis/hiredis.h>
#include <stddef.h>

/// The largest number of elements in an array of a reply. hiredis allocates an array before its elements have arrived.
static const long chiredis_max_elements = 65536;

#if HIREDIS_MAJOR >= 1
typedef size_t chiredis_array_count;
#else
typedef int chiredis_array_count;
#endif

/// The functions that build replies. They have to live as long as the parser.
typedef struct {
    redisReplyObjectFunctions functions;
    /// The function of hiredis that creates an array.
    void *(*create_array)(const redisReadTask *, chiredis_array_count);
} chiredis_functions;

/// Refuses arrays above the limit, for which the parser then reports an error.
static inline void *chiredis_create_array(const redisReadTask *task, chiredis_array_count elements) {
    if ((long)elements < 0 || (long)elements > chiredis_max_elements) return NULL;
    return ((const chiredis_functions *)task->privdata)->create_array(task, elements);
}

/// A parser of replies with bounded arrays, or null if memory runs out.
static inline redisReader *chiredis_create_reader(chiredis_functions *functions) {
    redisReader *reader = redisReaderCreate();
    if (reader == NULL) return NULL;
    functions->functions = *reader->fn;
    functions->create_array = reader->fn->createArray;
    functions->functions.createArray = chiredis_create_array;
    reader->fn = &functions->functions;
    reader->privdata = functions;
    return reader;
}

/// The next complete reply, null if more bytes are needed; `failed` is set if the bytes are not a reply.
/// The caller frees the reply with freeReplyObject.
static inline redisReply *chiredis_next_reply(redisReader *reader, int *failed) {
    void *reply = NULL;
    *failed = redisReaderGetReply(reader, &reply) != REDIS_OK;
    return (redisReply *)reply;
}

#endif

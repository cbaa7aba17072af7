#ifndef GIFREEL_CSYSTEM_INFLATE_H
#define GIFREEL_CSYSTEM_INFLATE_H

#include <zlib.h>

/// Prepares a stream that decompresses. `inflateInit2` is a macro, which Swift cannot import.
static inline int gifreel_inflate(z_stream *stream, int window_bits) {
    return inflateInit2(stream, window_bits);
}

#endif

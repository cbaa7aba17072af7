#ifndef GIFREEL_CZLIB_H
#define GIFREEL_CZLIB_H

#include <zlib.h>

/// Prepares a stream that decompresses gzip (RFC 1952). `inflateInit2` is a macro, which Swift cannot import.
static inline int gifreel_inflate_gzip(z_stream *stream) {
    return inflateInit2(stream, 16 + MAX_WBITS);
}

#endif

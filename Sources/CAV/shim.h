#ifndef GIFREEL_CAV_H
#define GIFREEL_CAV_H

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>

// Macros that Swift cannot import.
static const int gifreel_averror_again = AVERROR(EAGAIN);
static const int gifreel_averror_eof = AVERROR_EOF;
static const int gifreel_averror_nomem = AVERROR(ENOMEM);
static const int gifreel_averror_external = AVERROR_EXTERNAL;
static const int64_t gifreel_nopts = AV_NOPTS_VALUE;

// What this was built with, which may not be what is loaded.
static const unsigned gifreel_avcodec_built = LIBAVCODEC_VERSION_INT;
static const unsigned gifreel_avformat_built = LIBAVFORMAT_VERSION_INT;
static const unsigned gifreel_avutil_built = LIBAVUTIL_VERSION_INT;

static inline int gifreel_averror(int code) { return AVERROR(code); }

/// AVFrame.duration came with libavutil 57.30 (FFmpeg 6.0); before it, encoders had no use for one.
static inline void gifreel_frame_set_duration(AVFrame *frame, int64_t duration) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
    frame->duration = duration;
#else
    (void)frame;
    (void)duration;
#endif
}

typedef int (*gifreel_read_packet)(void *opaque, uint8_t *buffer, int size);
typedef int (*gifreel_write_packet)(void *opaque, const uint8_t *buffer, int size);
typedef int64_t (*gifreel_seek)(void *opaque, int64_t offset, int whence);

/// avio_alloc_context with one type of write callback: its buffer became const with libavformat 61 (FFmpeg 7.0).
static inline AVIOContext *gifreel_avio_alloc(
    unsigned char *buffer, int size, int writes, void *opaque,
    gifreel_read_packet read, gifreel_write_packet write, gifreel_seek seek) {
#if LIBAVFORMAT_VERSION_MAJOR >= 61
    return avio_alloc_context(buffer, size, writes, opaque, read, write, seek);
#else
    return avio_alloc_context(
        buffer, size, writes, opaque, read, (int (*)(void *, uint8_t *, int))(void *)write, seek);
#endif
}

#endif

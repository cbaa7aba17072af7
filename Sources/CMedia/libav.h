#ifndef GIFREEL_CMEDIA_LIBAV_H
#define GIFREEL_CMEDIA_LIBAV_H

#include <errno.h>
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/cpu.h>
#include <libavutil/display.h>
#include <libavutil/dovi_meta.h>
#include <libavutil/log.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>

// Macros that Swift cannot import.
static const int gifreel_averror_again = AVERROR(EAGAIN);
static const int gifreel_averror_eof = AVERROR_EOF;
static const int gifreel_averror_nomem = AVERROR(ENOMEM);
static const int gifreel_averror_external = AVERROR_EXTERNAL;
static const int gifreel_averror_invalid = AVERROR_INVALIDDATA;
static const int64_t gifreel_no_time = AV_NOPTS_VALUE;

// The versions of the headers. The loaded libraries may have others.
static const unsigned gifreel_avcodec_built = LIBAVCODEC_VERSION_INT;
static const unsigned gifreel_avformat_built = LIBAVFORMAT_VERSION_INT;
static const unsigned gifreel_avutil_built = LIBAVUTIL_VERSION_INT;
static const unsigned gifreel_swscale_built = LIBSWSCALE_VERSION_INT;

static inline int gifreel_averror(int code) { return AVERROR(code); }

typedef int (*gifreel_read_packet)(void *opaque, uint8_t *buffer, int size);
typedef int (*gifreel_write_packet)(void *opaque, const uint8_t *buffer, int size);
typedef int64_t (*gifreel_seek)(void *opaque, int64_t offset, int whence);

/// avio_alloc_context with one type of write callback, whose buffer became const in libavformat 61 (FFmpeg 7.0).
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

/// Side data that a container has for a whole stream; NULL without it. libavformat 60.15 (FFmpeg 6.1) moved it.
static inline const uint8_t *gifreel_stream_side_data(const AVStream *stream, enum AVPacketSideDataType type, size_t *size) {
#if LIBAVFORMAT_VERSION_INT >= AV_VERSION_INT(60, 15, 100)
    const AVPacketSideData *data =
        av_packet_side_data_get(stream->codecpar->coded_side_data, stream->codecpar->nb_coded_side_data, type);
    if (!data) return NULL;
    *size = data->size;
    return data->data;
#else
    return av_stream_get_side_data(stream, type, size);
#endif
}

/// The number of index entries before the first one whose sample exceeds `end`.
static inline int gifreel_index_whole(AVStream *stream, int64_t end) {
    int count = avformat_index_get_entries_count(stream);
    for (int i = 0; i < count; i++) {
        const AVIndexEntry *entry = avformat_index_get_entry(stream, i);
        if (entry->pos < 0 || entry->pos > end - entry->size) return i;
    }
    return count;
}

/// The data of block addition 1 (alpha) of a packet from Matroska; NULL without it.
static inline const uint8_t *gifreel_packet_addition(const AVPacket *packet, size_t *size) {
    size_t length = 0;
    const uint8_t *data = av_packet_get_side_data(packet, AV_PKT_DATA_MATROSKA_BLOCKADDITIONAL, &length);
    // Its number, in eight bytes, precedes it.
    if (!data || length <= 8 || data[7] != 1) return NULL;
    *size = length - 8;
    return data + 8;
}

/// Whether a frame consists of two fields. libavutil 58.7 (FFmpeg 6.1) made it a flag.
static inline int gifreel_is_interlaced(const AVFrame *frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(58, 7, 100)
    return (frame->flags & AV_FRAME_FLAG_INTERLACED) != 0;
#else
    return frame->interlaced_frame;
#endif
}

/// Whether a pixel format has red, green and blue.
static inline int gifreel_is_rgb(const AVPixFmtDescriptor *format) { return (format->flags & AV_PIX_FMT_FLAG_RGB) != 0; }
/// Whether the samples of a format are unsigned integers in planes, in the order of the machine's bytes.
static inline int gifreel_is_planar(const AVPixFmtDescriptor *format) {
    uint64_t other = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_FLOAT;
    if (format->flags & other) return 0;
    if ((format->flags & AV_PIX_FMT_FLAG_BE) != 0 && format->comp[0].depth > 8) return 0;
    for (int i = 0; i < format->nb_components; i++)
        if (format->comp[i].step != (format->comp[i].depth > 8 ? 2 : 1) || format->comp[i].shift != 0) return 0;
    return 1;
}

// libswscale for planes of 8-bit samples. An untyped pointer hides its context, which became a complete type in libswscale 8
// (FFmpeg 7.1): Swift imports the pointer differently since then.

/// A scaler whose rounding does not depend on the processor; NULL on failure.
static inline void *gifreel_scaler_open(int source_width, int source_height, int width, int height, int bytes) {
    enum AVPixelFormat format = bytes == 2 ? AV_PIX_FMT_GRAY16 : AV_PIX_FMT_GRAY8;
    return sws_getContext(
        source_width, source_height, format, width, height, format,
        SWS_BICUBIC | SWS_ACCURATE_RND | SWS_BITEXACT, NULL, NULL, NULL);
}

/// A scaler from 4:2:0 to 4:4:4, whose chroma lies at the left of its pixels or in the middle; NULL on failure.
static inline void *gifreel_chroma_scaler_open(int source_width, int source_height, int is_left, int width, int height) {
    struct SwsContext *scaler = sws_alloc_context();
    if (!scaler) return NULL;
    av_opt_set_int(scaler, "srcw", source_width, 0);
    av_opt_set_int(scaler, "srch", source_height, 0);
    av_opt_set_int(scaler, "src_format", AV_PIX_FMT_YUV420P, 0);
    av_opt_set_int(scaler, "dstw", width, 0);
    av_opt_set_int(scaler, "dsth", height, 0);
    av_opt_set_int(scaler, "dst_format", AV_PIX_FMT_YUV444P, 0);
    av_opt_set_int(scaler, "sws_flags", SWS_BICUBIC | SWS_ACCURATE_RND | SWS_BITEXACT, 0);
    // In 256ths of a pixel.
    av_opt_set_int(scaler, "src_h_chr_pos", is_left ? 0 : 128, 0);
    av_opt_set_int(scaler, "src_v_chr_pos", 128, 0);
    if (sws_init_context(scaler, NULL, NULL) < 0) {
        sws_freeContext(scaler);
        return NULL;
    }
    return scaler;
}

/// Scales a picture, or one plane, which is then its luma. Returns the number of rows written, or an AVERROR.
static inline int gifreel_scaler_run(
    void *scaler, const uint8_t *luma, const uint8_t *cb, const uint8_t *cr, int luma_stride, int cb_stride, int cr_stride,
    int rows, uint8_t *target_luma, uint8_t *target_cb, uint8_t *target_cr, int target_luma_stride, int target_cb_stride,
    int target_cr_stride) {
    const uint8_t *const sources[4] = {luma, cb, cr, NULL};
    const int source_strides[4] = {luma_stride, cb_stride, cr_stride, 0};
    uint8_t *const targets[4] = {target_luma, target_cb, target_cr, NULL};
    const int target_strides[4] = {target_luma_stride, target_cb_stride, target_cr_stride, 0};
    return sws_scale((struct SwsContext *)scaler, sources, source_strides, 0, rows, targets, target_strides);
}

static inline void gifreel_scaler_close(void *scaler) { sws_freeContext((struct SwsContext *)scaler); }

#endif

#ifndef GIFREEL_CMEDIA_LIBWEBP_H
#define GIFREEL_CMEDIA_LIBWEBP_H

#include <stdint.h>
#include <webp/decode.h>
#include <webp/demux.h>
#include <webp/encode.h>

/// Decodes a picture of this size to words of R, G, B, A in memory order, straight alpha.
static inline VP8StatusCode gifreel_webp_decode(
    const uint8_t *bytes, size_t count, uint32_t *target, int width, int height) {
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config)) return VP8_STATUS_INVALID_PARAM;
    VP8StatusCode status = WebPGetFeatures(bytes, count, &config.input);
    if (status != VP8_STATUS_OK) return status;
    if (config.input.width != width || config.input.height != height) return VP8_STATUS_BITSTREAM_ERROR;
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = (uint8_t *)target;
    config.output.u.RGBA.stride = width * 4;
    config.output.u.RGBA.size = (size_t)width * (size_t)height * 4;
    status = WebPDecode(bytes, count, &config);
    WebPFreeDecBuffer(&config.output);
    return status;
}

/// Encodes words of B, G, R, A in memory order, straight alpha, to a file in `writer`. They may be changed.
///
/// `quality` is 0 to 100; below 0, the picture is encoded without loss, with an `effort` of 0 to 100.
static inline WebPEncodingError gifreel_webp_encode(
    uint32_t *words, int width, int height, float quality, float effort, WebPMemoryWriter *writer) {
    WebPConfig config;
    WebPPicture picture;
    if (!WebPConfigInit(&config) || !WebPPictureInit(&picture)) return VP8_ENC_ERROR_INVALID_CONFIGURATION;
    config.lossless = quality < 0;
    config.quality = quality < 0 ? effort : quality;
    picture.use_argb = 1;
    picture.width = width;
    picture.height = height;
    picture.argb = words;
    picture.argb_stride = width;
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = writer;
    WebPEncodingError status = WebPEncode(&config, &picture) ? VP8_ENC_OK : picture.error_code;
    // Frees the encoder's allocations, which do not include `words`.
    WebPPictureFree(&picture);
    return status;
}

#endif

#ifndef GIFREEL_CWEBP_H
#define GIFREEL_CWEBP_H

#include <stdint.h>
#include <webp/decode.h>
#include <webp/demux.h>

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

#endif

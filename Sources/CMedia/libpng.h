#ifndef GIFREEL_CMEDIA_LIBPNG_H
#define GIFREEL_CMEDIA_LIBPNG_H

#include <png.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

/// What a call of the decoder found.
enum {
    gifreel_png_fine = 0,
    gifreel_png_broken = 1,
    gifreel_png_no_memory = 2
};

/// A decoder of one PNG that arrives piece by piece. libpng reports errors by `longjmp`, which must not skip a Swift function,
/// so all of its callbacks are here.
typedef struct {
    png_structp png;
    png_infop info;
    /// `width * height` words of R, G, B, A in memory order, straight alpha.
    uint32_t *target;
    uint32_t width;
    uint32_t height;
    uint32_t rows;
    int status;
} gifreel_png;

static inline png_voidp gifreel_png_allocate(png_structp png, png_alloc_size_t size) {
    void *memory = malloc(size);
    gifreel_png *reader = (gifreel_png *)png_get_mem_ptr(png);
    if (memory == NULL && reader != NULL) reader->status = gifreel_png_no_memory;
    return memory;
}

static inline void gifreel_png_release(png_structp png, png_voidp memory) {
    (void)png;
    free(memory);
}

static inline void gifreel_png_fail(png_structp png, png_const_charp message) {
    (void)message;
    gifreel_png *reader = (gifreel_png *)png_get_error_ptr(png);
    if (reader->status == gifreel_png_fine) reader->status = gifreel_png_broken;
    png_longjmp(png, 1);
}

static inline void gifreel_png_ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static inline void gifreel_png_begin(png_structp png, png_infop info) {
    gifreel_png *reader = (gifreel_png *)png_get_progressive_ptr(png);
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_add_alpha(png, 0xff, PNG_FILLER_AFTER);
    png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_image_width(png, info) != reader->width || png_get_image_height(png, info) != reader->height
        || png_get_rowbytes(png, info) != (size_t)reader->width * 4) {
        png_error(png, "another size");
    }
}

static inline void gifreel_png_row(png_structp png, png_bytep row, png_uint_32 number, int pass) {
    (void)pass;
    gifreel_png *reader = (gifreel_png *)png_get_progressive_ptr(png);
    if (number >= reader->height) return;
    reader->rows = number + 1;
    if (row != NULL) png_progressive_combine_row(png, (png_bytep)(reader->target + (size_t)number * reader->width), row);
}

static inline void gifreel_png_close(gifreel_png *reader) {
    png_destroy_read_struct(&reader->png, &reader->info, NULL);
}

/// Begins a picture of this size. Checksums are not computed: the caller changes chunks, and has verified those of the file.
static inline int gifreel_png_open(gifreel_png *reader, uint32_t *target, uint32_t width, uint32_t height) {
    memset(reader, 0, sizeof *reader);
    reader->target = target;
    reader->width = width;
    reader->height = height;
    reader->png = png_create_read_struct_2(
        PNG_LIBPNG_VER_STRING, reader, gifreel_png_fail, gifreel_png_ignore, reader, gifreel_png_allocate, gifreel_png_release);
    if (reader->png == NULL) return gifreel_png_no_memory;
    if (setjmp(png_jmpbuf(reader->png))) {
        gifreel_png_close(reader);
        return reader->status;
    }
    reader->info = png_create_info_struct(reader->png);
    if (reader->info == NULL) png_error(reader->png, "no memory");
    png_set_crc_action(reader->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    // Browsers accept matches farther back than the window that the zlib header names.
    png_set_option(reader->png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
    png_set_user_limits(reader->png, width, height);
    png_set_progressive_read_fn(reader->png, reader, gifreel_png_begin, gifreel_png_row, NULL);
    return gifreel_png_fine;
}

/// Decodes the next bytes of the PNG. After a result other than `gifreel_png_fine`, only `gifreel_png_close` may be called.
static inline int gifreel_png_push(gifreel_png *reader, const void *bytes, size_t count) {
    if (setjmp(png_jmpbuf(reader->png))) return reader->status;
    // libpng does not write to its input.
    png_process_data(reader->png, reader->info, (png_bytep)bytes, count);
    return gifreel_png_fine;
}

/// Whether every pixel has been decoded.
static inline int gifreel_png_is_complete(const gifreel_png *reader) {
    int is_interlaced = png_get_interlace_type(reader->png, reader->info) == PNG_INTERLACE_ADAM7;
    // After the last of the seven passes, libpng counts one more.
    return is_interlaced ? png_get_current_pass_number(reader->png) >= 7 : reader->rows == reader->height;
}

/// A file that an encoder has written. The caller frees its bytes, even after an error.
typedef struct {
    uint8_t *bytes;
    size_t count;
    size_t capacity;
    int status;
} gifreel_png_file;

static inline void gifreel_png_write(png_structp png, png_bytep bytes, size_t count) {
    gifreel_png_file *file = (gifreel_png_file *)png_get_io_ptr(png);
    if (count > file->capacity - file->count) {
        size_t capacity = 2 * file->capacity + count + 4096;
        uint8_t *larger = (uint8_t *)realloc(file->bytes, capacity);
        if (larger == NULL) {
            file->status = gifreel_png_no_memory;
            png_longjmp(png, 1);
        }
        file->bytes = larger;
        file->capacity = capacity;
    }
    memcpy(file->bytes + file->count, bytes, count);
    file->count += count;
}

static inline void gifreel_png_write_failed(png_structp png, png_const_charp message) {
    (void)message;
    png_longjmp(png, 1);
}

/// Encodes a picture of words of R, G, B, A in memory order, straight alpha; without `has_alpha`, the alpha is left out. If there are
/// `colors`, 1 to 256 such words, the picture has one index per byte.
static inline int gifreel_png_encode(
    const void *pixels, uint32_t width, uint32_t height, int has_alpha, const uint32_t *colors, int count, gifreel_png_file *file
) {
    int color_type = colors != NULL ? PNG_COLOR_TYPE_PALETTE : has_alpha ? PNG_COLOR_TYPE_RGB_ALPHA : PNG_COLOR_TYPE_RGB;
    size_t stride = (size_t)width * (colors != NULL ? 1 : 4);
    memset(file, 0, sizeof *file);
    file->status = gifreel_png_broken;
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, file, gifreel_png_write_failed, gifreel_png_ignore);
    if (png == NULL) return gifreel_png_no_memory;
    png_infop info = png_create_info_struct(png);
    if (info == NULL || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return info == NULL ? gifreel_png_no_memory : file->status;
    }
    png_set_write_fn(png, file, gifreel_png_write, NULL);
    png_set_user_limits(png, width, height);
    png_set_compression_level(png, 9);
    int depth = colors == NULL || count > 16 ? 8 : count > 4 ? 4 : count > 2 ? 2 : 1;
    png_set_IHDR(png, info, width, height, depth, color_type, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (colors != NULL) {
        png_color entries[PNG_MAX_PALETTE_LENGTH];
        png_byte alphas[PNG_MAX_PALETTE_LENGTH];
        int opaque_from = 0;
        for (int index = 0; index < count; index += 1) {
            const uint8_t *color = (const uint8_t *)(colors + index);
            entries[index] = (png_color){color[0], color[1], color[2]};
            alphas[index] = color[3];
            if (color[3] != 255) opaque_from = index + 1;
        }
        png_set_PLTE(png, info, entries, count);
        if (opaque_from > 0) png_set_tRNS(png, info, alphas, opaque_from, NULL);
    }
    // Filters make paletted pictures larger.
    png_set_filter(png, PNG_FILTER_TYPE_BASE, colors != NULL ? PNG_FILTER_NONE : PNG_ALL_FILTERS);
    png_write_info(png, info);
    if (color_type == PNG_COLOR_TYPE_RGB) png_set_filler(png, 0, PNG_FILLER_AFTER);
    png_set_packing(png);
    for (uint32_t y = 0; y < height; y += 1) png_write_row(png, (png_const_bytep)pixels + y * stride);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return gifreel_png_fine;
}

/// The CRC-32 of bytes, continued from that of the bytes before.
static inline uint32_t gifreel_crc32(uint32_t before, const void *bytes, size_t count) {
    return (uint32_t)crc32_z(before, (const Bytef *)bytes, count);
}

#endif

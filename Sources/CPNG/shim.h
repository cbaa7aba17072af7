#ifndef GIFREEL_CPNG_H
#define GIFREEL_CPNG_H

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

/// A decoder of one PNG that arrives piece by piece. libpng reports errors by `longjmp`, which no Swift function may be between,
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

/// The CRC-32 of bytes, continued from that of the bytes before.
static inline uint32_t gifreel_crc32(uint32_t before, const void *bytes, size_t count) {
    return (uint32_t)crc32_z(before, (const Bytef *)bytes, count);
}

#endif

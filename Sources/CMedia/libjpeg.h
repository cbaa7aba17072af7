#ifndef GIFREEL_CMEDIA_LIBJPEG_H
#define GIFREEL_CMEDIA_LIBJPEG_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>
#include <jerror.h>

/// The outcome of a call of the encoder.
enum {
    gifreel_jpeg_fine = 0,
    gifreel_jpeg_failed = 1,
    gifreel_jpeg_no_memory = 2
};

typedef struct {
    struct jpeg_error_mgr manager;
    jmp_buf start;
} gifreel_jpeg_error;

static inline void gifreel_jpeg_exit(j_common_ptr jpeg) {
    longjmp(((gifreel_jpeg_error *)jpeg->err)->start, 1);
}

static inline void gifreel_jpeg_ignore(j_common_ptr jpeg) { (void)jpeg; }

/// Encodes `width * height` words of R, G, B and an ignored byte in memory order as a JPEG with a JFIF header and optimal Huffman codes.
/// libjpeg reports errors by `longjmp`, which must not skip a Swift function, so the whole encoding is here.
///
/// - `quality`: 1…100 on the scale of the Independent JPEG Group.
/// - `halves_chroma`: whether chroma has half the resolution in both directions.
/// - `file`: set to memory of `*size` bytes, which the caller frees; to NULL after an error.
static inline int gifreel_jpeg_encode(
    const uint32_t *words, uint32_t width, uint32_t height, int quality, int halves_chroma, int is_progressive,
    unsigned char **file, unsigned long *size
) {
    struct jpeg_compress_struct jpeg;
    gifreel_jpeg_error error;
    jpeg.err = jpeg_std_error(&error.manager);
    error.manager.error_exit = gifreel_jpeg_exit;
    error.manager.output_message = gifreel_jpeg_ignore;
    *file = NULL;
    *size = 0;
    if (setjmp(error.start) != 0) {
        int is_memory = error.manager.msg_code == JERR_OUT_OF_MEMORY;
        jpeg_destroy_compress(&jpeg);
        // libjpeg sets the caller's pointer only at the end. Until then it may refer to a smaller buffer that libjpeg has freed. The
        // current one is lost, because only libjpeg knows it; a worker ends after an error.
        *file = NULL;
        *size = 0;
        return is_memory ? gifreel_jpeg_no_memory : gifreel_jpeg_failed;
    }
    jpeg_create_compress(&jpeg);
    jpeg_mem_dest(&jpeg, file, size);
    jpeg.image_width = width;
    jpeg.image_height = height;
    jpeg.input_components = 4;
    jpeg.in_color_space = JCS_EXT_RGBX;
    jpeg_set_defaults(&jpeg);
    jpeg_set_quality(&jpeg, quality, TRUE);
    jpeg.optimize_coding = TRUE;
    jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = halves_chroma ? 2 : 1;
    if (is_progressive) jpeg_simple_progression(&jpeg);
    jpeg_start_compress(&jpeg, TRUE);
    while (jpeg.next_scanline < height) {
        JSAMPROW row = (JSAMPROW)(words + (size_t)jpeg.next_scanline * width);
        jpeg_write_scanlines(&jpeg, &row, 1);
    }
    jpeg_finish_compress(&jpeg);
    jpeg_destroy_compress(&jpeg);
    return gifreel_jpeg_fine;
}

#endif

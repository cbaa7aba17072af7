#ifndef GIFREEL_CMEDIA_GIFLIB_H
#define GIFREEL_CMEDIA_GIFLIB_H

#include <gif_lib.h>
#include <stdlib.h>

/// Reads an image descriptor and its local colour map without a new element of `SavedImages`, so that memory does not grow with
/// the number of frames. giflib before 5.2 has no `DGifGetImageHeader`; there the saved image is freed again.
static inline int gifreel_gif_image_header(GifFileType *gif) {
#if GIFLIB_MAJOR > 5 || (GIFLIB_MAJOR == 5 && GIFLIB_MINOR >= 2)
    return DGifGetImageHeader(gif);
#else
    int status = DGifGetImageDesc(gif);
    if (gif->SavedImages != NULL) {
        GifFreeSavedImages(gif);
        gif->SavedImages = NULL;
        gif->ImageCount = 0;
    }
    return status;
#endif
}

#endif

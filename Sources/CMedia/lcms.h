#ifndef GIFREEL_CMEDIA_LCMS_H
#define GIFREEL_CMEDIA_LCMS_H

#include <lcms2.h>

/// A conversion of bytes R, G, B, A, whose alpha stays, to sRGB. Relative colorimetric without black point compensation, as
/// browsers convert.
///
/// - Parameter is_exact: Whether each colour is computed exactly, without a table: for few colours.
static inline cmsHTRANSFORM gifreel_lcms_colors(cmsHPROFILE source, cmsHPROFILE target, int is_exact) {
    return cmsCreateTransform(
        source, TYPE_RGBA_8, target, TYPE_RGBA_8, INTENT_RELATIVE_COLORIMETRIC,
        cmsFLAGS_COPY_ALPHA | (is_exact ? cmsFLAGS_NOOPTIMIZE : 0));
}

/// A conversion of grey bytes to sRGB's bytes R, G, B, and one byte that stays as it is.
static inline cmsHTRANSFORM gifreel_lcms_greys(cmsHPROFILE source, cmsHPROFILE target) {
    return cmsCreateTransform(
        source, TYPE_GRAY_8, target, TYPE_RGBA_8, INTENT_RELATIVE_COLORIMETRIC, cmsFLAGS_NOOPTIMIZE);
}

#endif

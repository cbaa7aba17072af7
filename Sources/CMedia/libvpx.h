#ifndef GIFREEL_LIBVPX_H
#define GIFREEL_LIBVPX_H

#include <stddef.h>

/// libvpx's own function for zeroed memory, in whose place the linker calls ``__wrap_vpx_calloc`` (`--wrap` in Package.swift). There is none
/// to call if libvpx is a shared library.
void *__real_vpx_calloc(size_t count, size_t size) __attribute__((weak));

static inline int gifreel_vpx_is_wrapped(void) { return __real_vpx_calloc != NULL; }

static inline void *gifreel_vpx_calloc(size_t count, size_t size) { return __real_vpx_calloc(count, size); }

#endif

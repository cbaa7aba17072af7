#ifndef GIFREEL_CLINUX_HEAP_H
#define GIFREEL_CLINUX_HEAP_H

#include <stddef.h>

/// Has malloc use one arena: arenas of threads reserve address space that RLIMIT_AS would count.
void clinux_use_one_arena(void);

/// Has malloc take its next `bytes` (480 MB at most) from one contiguous area. It takes address space; memory is committed as it is used.
void clinux_reserve_heap(size_t bytes);

/// Asks the kernel for whole large pages (MADV_HUGEPAGE) in the first `bytes` of that place: one page fault in place of 512,
/// at the cost of what they leave unused.
void clinux_use_large_pages(size_t bytes);

/// Gives what malloc holds free at the heap's end back to the kernel.
void clinux_trim_heap(void);

#endif

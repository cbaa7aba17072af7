#ifndef GIFREEL_CLINUX_HEAP_H
#define GIFREEL_CLINUX_HEAP_H

#include <stddef.h>

/// Makes malloc use one arena. Arenas of threads would reserve address space, which RLIMIT_AS counts.
void clinux_use_one_arena(void);

/// Makes malloc serve its next `bytes` (up to 480 MB) from one contiguous area. Reserves address space; the kernel commits memory
/// on first use.
void clinux_reserve_heap(size_t bytes);

/// Requests large pages (MADV_HUGEPAGE) for the first `bytes` of that area: one page fault instead of 512, at the cost of memory
/// that stays unused.
void clinux_use_large_pages(size_t bytes);

/// Returns free memory at the end of the heap to the kernel.
void clinux_trim_heap(void);

#endif

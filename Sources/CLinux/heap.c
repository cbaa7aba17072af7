#include "clinux_process.h"

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

void clinux_use_one_arena(void) {
    mallopt(M_ARENA_MAX, 1);
}

static struct {
    uintptr_t start, end;
} reserve;

void clinux_reserve_heap(size_t bytes) {
    // Below the largest M_MMAP_THRESHOLD, so that each block comes from the heap.
    enum { step = 30 << 20, max_blocks = 16 };
    // Blocks come from the heap, and stay there after free(3).
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    void *blocks[max_blocks];
    int count = 0;
    for (size_t taken = 0; taken < bytes && count < max_blocks; taken += step) {
        const size_t length = bytes - taken < step ? bytes - taken : step;
        void *block = malloc(length);
        if (block == NULL) {
            break;
        }
        blocks[count++] = block;
        if (count == 1) {
            reserve.start = (uintptr_t)block;
        }
        reserve.end = (uintptr_t)block + length;
    }
    for (int block = 0; block < count; block++) {
        free(blocks[block]);
    }
    // Larger allocations use mmap(2), and their callers request large pages themselves.
    mallopt(M_MMAP_THRESHOLD, 2 << 20);
}

void clinux_use_large_pages(size_t bytes) {
    const uintptr_t size = 2 << 20;
    const uintptr_t first = (reserve.start + size - 1) & ~(size - 1);
    const uintptr_t end = (reserve.end - reserve.start < bytes ? reserve.end : reserve.start + bytes) & ~(size - 1);
    if (end > first) {
        // Not an error: without large pages the process is only slower.
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
}

void clinux_trim_heap(void) {
    malloc_trim(0);
}

#include "clinux_heap.h"

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
    // The heap gives no larger block than this.
    enum { step = 30 << 20, most = 16 };
    // Blocks are to come from the heap, and to stay there when they are free again.
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    void *blocks[most];
    int count = 0;
    for (size_t taken = 0; taken < bytes && count < most; taken += step) {
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
    // Whoever takes more than a large page at once asks for large pages himself.
    mallopt(M_MMAP_THRESHOLD, 2 << 20);
}

void clinux_use_large_pages(size_t bytes) {
    const uintptr_t size = 2 << 20;
    const uintptr_t first = (reserve.start + size - 1) & ~(size - 1);
    const uintptr_t end = (reserve.end - reserve.start < bytes ? reserve.end : reserve.start + bytes) & ~(size - 1);
    if (end > first) {
        // Without large pages everything works, if slower.
        (void)madvise((void *)first, end - first, MADV_HUGEPAGE);
    }
}

void clinux_trim_heap(void) {
    malloc_trim(0);
}

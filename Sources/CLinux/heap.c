#include "clinux_process.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

void clinux_use_one_arena(void) {
    mallopt(M_ARENA_MAX, 1);
}

/// Bytes of a large page. Where the kernel has another size, it ignores the request.
static const size_t large_page = 2 << 20;

/// The reserved area, from the first large page to the last one.
static struct {
    uintptr_t start, end;
    /// The end of the part whose memory the kernel has committed.
    uintptr_t committed;
    /// Whether a large page took longer than the small pages that it replaces.
    bool has_slow_large_pages;
} reserve;

/// The start of the large page that an address is in.
static uintptr_t round_down(uintptr_t address) {
    return address & ~(uintptr_t)(large_page - 1);
}

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
            reserve.start = round_down((uintptr_t)block + large_page - 1);
            reserve.committed = reserve.start;
        }
        const uintptr_t end = round_down((uintptr_t)block + length);
        reserve.end = end > reserve.start ? end : reserve.start;
    }
    for (int block = 0; block < count; block++) {
        free(blocks[block]);
    }
    // Larger allocations use mmap(2), and their callers request large pages themselves.
    mallopt(M_MMAP_THRESHOLD, 2 << 20);
}

/// The end of the whole large pages among the first bytes of the reserved area.
static uintptr_t reserve_prefix(size_t bytes) {
    return reserve.end - reserve.start < bytes ? reserve.end : reserve.start + round_down(bytes);
}

void clinux_commit_heap(size_t bytes, size_t in_large_pages) {
    // Small pages of the same size take as long in a virtual machine.
    const uint64_t slow_nanoseconds = 1000000;
    const uintptr_t end = reserve_prefix(bytes), large_end = reserve_prefix(in_large_pages);
    if (!reserve.has_slow_large_pages && reserve.committed < large_end) {
        (void)madvise((void *)reserve.committed, large_end - reserve.committed, MADV_HUGEPAGE);
    }
    // If advice has no effect, the process is only slower.
    while (reserve.committed < end) {
        const uint64_t start = clinux_thread_cpu_time();
        (void)madvise((void *)reserve.committed, large_page, MADV_POPULATE_WRITE);
        reserve.committed += large_page;
        if (!reserve.has_slow_large_pages && clinux_thread_cpu_time() - start > slow_nanoseconds) {
            reserve.has_slow_large_pages = true;
            // For the encoder's mappings, too.
            (void)prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        }
    }
}

void clinux_trim_heap(void) {
    malloc_trim(0);
}

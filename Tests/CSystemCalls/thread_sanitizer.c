// Tells ThreadSanitizer what the Swift runtime does, which is built without it. Otherwise each access that is ordered by waiting for a
// mutex would look like a data race.

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>
#include <stdbool.h>
#include <stdint.h>

// The slow paths of Swift's Mutex. Its fast paths are inlined and thus known to the sanitizer.

#define SELF __attribute__((swift_context)) void *mutex
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

__attribute__((swiftcall)) void mutex_lock_slow(uint32_t thread, SELF) __asm__(LOCK);
__attribute__((swiftcall)) bool mutex_try_lock_slow(SELF) __asm__(TRY_LOCK);
__attribute__((swiftcall)) void mutex_unlock_slow(SELF) __asm__(UNLOCK);

/// The function of the runtime, looked up once. Two threads that look it up at the same time find the same.
#define NEXT(name, symbol) \
    static _Atomic(__typeof__(&name)) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, symbol)

__attribute__((swiftcall)) void mutex_lock_slow(uint32_t thread, SELF) {
    NEXT(mutex_lock_slow, LOCK);
    next(thread, mutex);
    __tsan_acquire(mutex);
}

__attribute__((swiftcall)) bool mutex_try_lock_slow(SELF) {
    NEXT(mutex_try_lock_slow, TRY_LOCK);
    bool isLocked = next(mutex);
    if (isLocked) __tsan_acquire(mutex);
    return isLocked;
}

__attribute__((swiftcall)) void mutex_unlock_slow(SELF) {
    NEXT(mutex_unlock_slow, UNLOCK);
    __tsan_release(mutex);
    next(mutex);
}

// Reports that are no races:
// - Values of size zero share an address, and the sanitizer takes them for one variable. This concerns the meter that measures nothing
//   and the system's random number generator.
// - A task whose continuation is resumed before it waits continues at once, and the runtime does not report this order to the sanitizer.
//   This concerns the first read of a fetched file.
const char *__tsan_default_suppressions(void) {
    return "race_top:5Media9MP4OutputO6encode\n"
           "race_top:5Media9MP4OutputO4next\n"
           "race_top:5Media12SampleSourceCAARi_zrlE4next\n"
           "race_top:5Media12SampleSourceCAARi_zrlE11nextPicture\n"
           "race_top:5Media12SampleSourceCAARi_zrlE7compose\n"
           "race_top:8SystemIO7BackoffV5pause\n"
           "race_top:8SystemIO16SharedDescriptorC4size\n";
}

#endif
#endif

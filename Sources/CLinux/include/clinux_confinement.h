#ifndef GIFREEL_CLINUX_CONFINEMENT_H
#define GIFREEL_CLINUX_CONFINEMENT_H

#include <stdint.h>
#include <sys/types.h>

/// The version of landlock(7) that the kernel has (1 and up); 0 where it has none, or -1 with errno.
int clinux_landlock_version(void);

/// Denies the calling process, for good, every access that landlock(7) knows: opening any file, TCP, signals and
/// abstract sockets to processes outside. Descriptors that are open stay usable. Needs `clinux_no_new_privileges`.
/// Returns the version of landlock that holds now, 0 where the kernel has none, or -1 with errno.
int clinux_deny_files_and_network(void);

/// What the worker may do with what it was given; all else ends it with SIGSYS.
struct clinux_worker_calls {
    /// The one file it may read, write and cut by position.
    int file;
    /// The one socket it may send on.
    int channel;
    /// Nonzero where it may start threads.
    int threads;
};

/// Allows the calling process only what a zygote does, for good: receive jobs, fork, wait, kill, and set its children up.
/// Any other system call ends it with SIGSYS. Needs `clinux_no_new_privileges` and one thread.
/// Returns 1, 0 where the kernel or this processor's filter is missing, or -1 with errno.
int clinux_allow_zygote_calls(void);

/// Allows the calling process only what a worker does, for good: memory, threads (never processes), clocks, locks, its
/// one file and its one socket. Any other system call ends it with SIGSYS. Needs `clinux_no_new_privileges` and one thread.
/// Returns 1, 0 where the kernel or this processor's filter is missing, or -1 with errno.
int clinux_allow_worker_calls(const struct clinux_worker_calls *calls);

/// Gives up all capabilities of the calling process for good. Returns 0, or -1 with errno.
int clinux_drop_capabilities(void);

#endif

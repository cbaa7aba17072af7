#ifndef GIFREEL_CLINUX_CONFINEMENT_H
#define GIFREEL_CLINUX_CONFINEMENT_H

#include <stdint.h>
#include <sys/types.h>

/// The version of landlock(7) in the kernel (1 and up), 0 if it has none, or -1 with errno.
int clinux_landlock_version(void);

/// Permanently denies the calling process every access that landlock(7) can restrict: opening files, TCP, and signals and
/// abstract sockets to other processes. Open descriptors stay usable. Requires `clinux_no_new_privileges`.
/// Returns the version of Landlock that the kernel supports, 0 if the kernel has none, or -1 with errno.
int clinux_deny_files_and_network(void);

/// The descriptors and threads that a worker may use. Any other use ends it with SIGSYS.
struct clinux_worker_calls {
    /// The file that it may read, write and truncate by position.
    int file;
    /// The socket on which it may send.
    int channel;
    /// Nonzero if it may start threads.
    int threads;
};

/// Permanently restricts the calling process to the system calls of a zygote: receive jobs, fork, wait, kill, set up children.
/// Any other call ends it with SIGSYS. Requires `clinux_no_new_privileges` and a single thread.
/// Returns 1, 0 if the kernel lacks seccomp(2) or there are no rules for this processor, or -1 with errno.
int clinux_allow_zygote_calls(void);

/// Permanently restricts the calling process to the system calls of a worker: memory, threads (no processes), clocks, locks, its
/// file and its socket. Any other call ends it with SIGSYS. Requires `clinux_no_new_privileges` and a single thread.
/// Returns 1, 0 if the kernel lacks seccomp(2) or there are no rules for this processor, or -1 with errno.
int clinux_allow_worker_calls(const struct clinux_worker_calls *calls);

/// Permanently drops all capabilities of the calling process. Returns 0, or -1 with errno.
int clinux_drop_capabilities(void);

#endif

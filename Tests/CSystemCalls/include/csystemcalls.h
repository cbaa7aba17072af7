#ifndef CSYSTEMCALLS_H
#define CSYSTEMCALLS_H

#include <stdint.h>
#include <sys/syscall.h>

/// Interposition of the system calls that change or inspect files, or read them at an offset, for a simulated disk.
///
/// The test program defines the functions of libc that read, inspect, write, sync, name and remove files. The dynamic linker prefers them to those
/// of libc, even for calls by libraries such as SQLite. Without hooks they only call the functions of libc.

enum csystemcalls_call {
    csystemcalls_write,
    csystemcalls_truncate,
    csystemcalls_reserve,
    csystemcalls_sync,
    csystemcalls_create,
    csystemcalls_link,
    csystemcalls_rename,
    csystemcalls_unlink,
    csystemcalls_make_directory,
    csystemcalls_read,
    csystemcalls_inspect,
};

/// One call. A call that concerns a name has the descriptor of its directory, or AT_FDCWD.
typedef struct {
    int call;
    int fd;
    /// Where a write begins, or the new length of a truncated file.
    int64_t offset;
    /// The bytes of a write; null if the kernel copies them from another file.
    const void *bytes;
    /// The number of bytes of a write.
    int64_t count;
    /// The name that a call concerns, or null.
    const char *name;
} csystemcalls_event;

/// The result of a hook that lets a call succeed without effect.
#define CSYSTEMCALLS_SKIP (-1)

/// Called before a call: returns 0 to let it happen, an errno to fail it, or CSYSTEMCALLS_SKIP.
typedef int (*csystemcalls_before)(const csystemcalls_event *event);
/// Called after a call that has succeeded; `count` is the number of bytes that were written.
typedef void (*csystemcalls_after)(const csystemcalls_event *event);

/// Calls the hooks for all files below the directory `root`, an absolute path, from now on. One set of hooks at a time.
void csystemcalls_begin(const char *root, csystemcalls_before before, csystemcalls_after after);

/// Calls no hooks any more.
void csystemcalls_end(void);

/// The numbers of system calls.
enum csystemcalls_number {
    csystemcalls_capset = SYS_capset,
    csystemcalls_fsync = SYS_fsync,
    csystemcalls_linkat = SYS_linkat,
    csystemcalls_memfd_create = SYS_memfd_create,
    // The same on every architecture; headers older than the kernel lack them.
    csystemcalls_clone3 = 435,
    csystemcalls_openat2 = 437,
    csystemcalls_landlock_create_ruleset = 444,
};

/// Lets a system call fail with the error `code` from now on, as by a kernel without it or a filter: in the calling thread and in the
/// processes that it starts. Returns 0, or -1 with errno.
int csystemcalls_refuse(int call, int code);

#endif

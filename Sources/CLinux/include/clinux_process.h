#ifndef GIFREEL_CLINUX_PROCESS_H
#define GIFREEL_CLINUX_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <semaphore.h>
#include <sys/types.h>

/// An argument of the process, the program's name at 0; null beyond the last one.
const char *clinux_argument(int index);

/// fork(2), which Swift does not import. Must be called while the process has a single thread.
pid_t clinux_fork(void);

/// Whether the process may have this number of further threads at the same time, up to 64. Returns 0 only if the system or a limit of
/// processes refuses one, and not if memory is short.
int clinux_can_start_threads(int count);

/// Makes the kernel refuse every new thread or process of the calling process with EAGAIN, as a limit of processes does (seccomp). For
/// tests. Returns 0, or -1 with errno.
int clinux_refuse_threads(void);

/// The processes and threads of the system, or 0 if they are unknown.
uint64_t clinux_task_count(void);

/// Opens and reads the adjustment of the calling process's score for the OOM killer, -1000 to 1000 (proc_pid_oom_score_adj(5)).
/// Returns a descriptor, or -1 with errno.
int clinux_open_oom_score(int *score);

/// Sets the adjustment, which processes forked later inherit. An unprivileged process can raise it, and lower it to its former value.
void clinux_set_oom_score(int file, int score);

/// Starts tracing a process (PTRACE_ATTACH). A test shows that a worker cannot. Returns 0, or -1 with errno.
int clinux_trace(pid_t process);

/// A connected pair of SOCK_SEQPACKET Unix sockets, closed on exec. Returns 0, or -1 with errno.
int clinux_message_pair(int pair[2]);

/// Sends one message with up to 4 descriptors (SCM_RIGHTS). Returns 0, or -1 with errno.
int clinux_send_message(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count);

/// Receives one message with its descriptors, closed on exec. `descriptors` must hold 4, `descriptor_count` receives their number;
/// surplus descriptors are closed. Returns the message's length, 0 at the end or for a message without bytes, or -1 with errno:
/// EMSGSIZE if the message was truncated, or has descriptors but no bytes, and then its descriptors are closed.
ssize_t clinux_receive_message(int socket, void *bytes, size_t capacity, int *descriptors, int *descriptor_count);

/// Redirects standard input and output to /dev/null. Returns 0, or -1 with errno.
int clinux_use_null_device(void);

/// Moves up to 4 descriptors to the numbers from 3 on, in order, and closes all above them.
/// Returns 0, or -1 with errno.
int clinux_keep_only(const int *descriptors, int count);

/// Makes the kernel kill the calling process when its parent's thread ends (PR_SET_PDEATHSIG).
int clinux_die_with_parent(void);

/// Permanently prevents exec from granting privileges (PR_SET_NO_NEW_PRIVS).
int clinux_no_new_privileges(void);

/// The size of the calling process' address space in bytes; 0 if /proc cannot be read.
uint64_t clinux_address_space(void);

/// The processor time in microseconds that a process of the same user has used; 0 if there is no such process.
uint64_t clinux_cpu_time(pid_t process);

/// Sets the name of the calling thread that `ps` shows, up to 15 bytes. The first thread names the process.
void clinux_name_thread(const char *name);

/// Sets the scheduling policy of the calling thread: SCHED_BATCH, which does not preempt a running thread on wake-up, or SCHED_OTHER.
/// Its niceness stays. Returns 0, or -1 with errno.
int clinux_use_batch_scheduling(int is_batch);

/// The processor time in nanoseconds that the calling thread has used (CLOCK_THREAD_CPUTIME_ID).
uint64_t clinux_thread_cpu_time(void);

/// Permanently forbids core dumps of the calling process and its children, to files and to handlers (RLIMIT_CORE).
/// Returns 0, or -1 with errno.
int clinux_forbid_core_dumps(void);

/// Resource limits of a worker. Zero leaves a limit unchanged.
struct clinux_limits {
    /// Address space in bytes (RLIMIT_AS).
    uint64_t memory;
    /// Processor time in seconds (RLIMIT_CPU: SIGXCPU, one second later SIGKILL).
    uint64_t cpu_seconds;
    /// The largest file it may write, in bytes (RLIMIT_FSIZE).
    uint64_t file_bytes;
    /// The number of processes and threads that the user has, those of other processes included (RLIMIT_NPROC). The kernel does not
    /// apply it to root.
    uint64_t tasks;
    /// The number of open descriptors (RLIMIT_NOFILE).
    uint64_t descriptors;
};

/// Sets the limits on the calling process. Where it already has lower hard limits, these stay. Returns 0, or -1 with errno.
int clinux_set_limits(const struct clinux_limits *limits);

/// Raises the limit of open descriptors to the hard limit (RLIMIT_NOFILE).
void clinux_raise_descriptor_limit(void);

/// How a child ended.
struct clinux_child_exit {
    pid_t pid;
    /// The exit code, or -1 if a signal ended it.
    int code;
    /// The signal that ended it, or 0.
    int signal;
    uint64_t user_microseconds;
    uint64_t system_microseconds;
    /// The largest resident size in bytes.
    uint64_t peak_bytes;
};

/// Reaps one child that has ended, without waiting. Returns 1, 0 if none has ended, or -1 with errno.
int clinux_reap(struct clinux_child_exit *result);

/// Blocks SIGCHLD and returns a descriptor that becomes readable when a child ends, or -1 with errno.
int clinux_child_signals(void);

/// Restores the default action of all signals of the calling process and unblocks them.
void clinux_reset_signals(void);

/// Decrements a semaphore, waiting up to `nanoseconds` by the monotonic clock (sem_clockwait(3)). Returns 0, or -1 with errno.
int clinux_semaphore_wait(sem_t *semaphore, int64_t nanoseconds);

// MARK: - The heap of the calling process

/// Makes malloc use one arena. Arenas of threads would reserve address space, which RLIMIT_AS counts.
void clinux_use_one_arena(void);

/// Makes malloc serve its next `bytes` (up to 480 MB) from one contiguous area. Reserves address space; the kernel commits memory
/// on first use.
void clinux_reserve_heap(size_t bytes);

/// Commits the first `bytes` of that area at once, and requests large pages (MADV_HUGEPAGE) for its first `in_large_pages` bytes:
/// one page fault instead of 512, at the cost of memory that stays unused.
///
/// If a large page takes longer than the small pages that it stands for, the process gets small pages from then on. That happens in
/// virtual machines that return free large pages to their host (free page reporting): 4 ms for each instead of 0.2 ms.
///
/// May be called again with more bytes, on the same thread.
void clinux_commit_heap(size_t bytes, size_t in_large_pages);

/// Returns free memory at the end of the heap to the kernel.
void clinux_trim_heap(void);

#endif

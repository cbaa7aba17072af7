#ifndef GIFREEL_CLINUX_PROCESS_H
#define GIFREEL_CLINUX_PROCESS_H

#include <stddef.h>
#include <stdint.h>
#include <semaphore.h>
#include <sys/types.h>

/// fork(2), which Swift does not import. To be called while the process has one thread.
pid_t clinux_fork(void);

/// The calling process' parent.
pid_t clinux_parent(void);

/// Begins to trace a process (PTRACE_ATTACH). For tests that see that it cannot. Returns 0, or -1 with errno.
int clinux_trace(pid_t process);

/// A connected pair of SOCK_SEQPACKET Unix sockets, closed on exec. Returns 0, or -1 with errno.
int clinux_message_pair(int pair[2]);

/// Sends one message and, with it, descriptors (SCM_RIGHTS, at most 4). Returns 0, or -1 with errno.
int clinux_send_message(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count);

/// Receives one message and the descriptors that came with it, closed on exec.
/// `descriptors` has room for 4; `descriptor_count` tells how many came; surplus ones are closed.
/// Returns the message's length, 0 at the end, or -1 with errno (EMSGSIZE for a message that was cut).
ssize_t clinux_receive_message(int socket, void *bytes, size_t capacity, int *descriptors, int *descriptor_count);

/// Closes every descriptor from `first` on.
int clinux_close_from(int first);

/// Has standard input and output be /dev/null. Returns 0, or -1 with errno.
int clinux_use_null_device(void);

/// Moves `count` descriptors (at most 4) to the numbers from 3 on, in order, and closes all above them.
/// Returns 0, or -1 with errno.
int clinux_keep_only(const int *descriptors, int count);

/// Has the calling process killed when its parent's thread ends (PR_SET_PDEATHSIG).
int clinux_die_with_parent(void);

/// Forbids gaining privileges by exec for good (PR_SET_NO_NEW_PRIVS).
int clinux_no_new_privileges(void);

/// Bytes of address space that the calling process has now; 0 where /proc cannot be read.
uint64_t clinux_address_space(void);

/// Microseconds of processor time that a process of the same user has taken so far; 0 where there is none.
uint64_t clinux_cpu_time(pid_t process);

/// Names the calling thread, and with the first one the process, as `ps` shows it, at most 15 bytes.
void clinux_name_thread(const char *name);

/// Whether the calling thread is scheduled as threads are by default (SCHED_OTHER), and not by a policy that was set from outside.
int clinux_has_default_scheduling(void);

/// Has the calling thread scheduled as SCHED_BATCH, which takes no processor from a thread that is running, or as SCHED_OTHER
/// again. Its niceness stays. Returns 0, or -1 with errno.
int clinux_use_batch_scheduling(int is_batch);

/// Nanoseconds of processor time that the calling thread has taken (CLOCK_THREAD_CPUTIME_ID).
uint64_t clinux_thread_cpu_time(void);

/// Resource limits of a worker. Zero leaves a limit as it is.
struct clinux_limits {
    /// Bytes of address space (RLIMIT_AS).
    uint64_t memory;
    /// Seconds of processor time (RLIMIT_CPU: SIGXCPU, a second later SIGKILL).
    uint64_t cpu_seconds;
    /// Bytes of the largest file it may write (RLIMIT_FSIZE).
    uint64_t file_bytes;
    /// Descriptors it may have open (RLIMIT_NOFILE).
    uint64_t descriptors;
};

/// Sets the limits on the calling process, and forbids core files. Returns 0, or -1 with errno.
int clinux_set_limits(const struct clinux_limits *limits);

/// Raises the number of descriptors the process may have open as far as it may (RLIMIT_NOFILE, soft to hard).
void clinux_raise_descriptor_limit(void);

/// How a child ended.
struct clinux_child_exit {
    pid_t pid;
    /// Exit code, or -1 where a signal ended it.
    int code;
    /// The signal that ended it, or 0.
    int signal;
    uint64_t user_microseconds;
    uint64_t system_microseconds;
    /// Largest resident size, in bytes.
    uint64_t peak_bytes;
};

/// Takes the status of one child that has ended, without waiting. Returns 1, 0 when none has ended, or -1 with errno.
int clinux_reap(struct clinux_child_exit *result);

/// Blocks SIGCHLD and makes a descriptor that is readable when a child has ended. Returns it, or -1 with errno.
int clinux_child_signals(void);

/// Sets all signals of the calling process to their defaults and unblocks them.
void clinux_reset_signals(void);

/// Decrements a semaphore, waiting up to `nanoseconds` by the monotonic clock (sem_clockwait(3)). Returns 0, or -1 with errno.
int clinux_semaphore_wait(sem_t *semaphore, int64_t nanoseconds);

#endif

#include "clinux_confinement.h"
#include "clinux_process.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifndef SECCOMP_FILTER_FLAG_SPEC_ALLOW
#define SECCOMP_FILTER_FLAG_SPEC_ALLOW 4
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_rseq
#if defined(__x86_64__)
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#ifdef NATIVE_ARCHITECTURE

// Programs in classic BPF (seccomp(2)). Rules are evaluated in order. A call that matches none of them kills the process.

enum { max_instructions = 512, max_tests = 2 };

/// One argument of a system call, masked, equals a value. A mask of 0 means no test. Only the lower 32 bits are compared:
/// descriptors, flags and process ids have no more.
struct test {
    uint32_t argument;
    uint32_t mask;
    uint32_t value;
};

/// The verdict for a call whose arguments pass all tests.
struct rule {
    uint32_t call;
    uint32_t verdict;
    struct test tests[max_tests];
};

struct program {
    struct sock_filter instructions[max_instructions];
    unsigned short count;
};

#define ALLOW(name) {SYS_##name, SECCOMP_RET_ALLOW, {{0}}}
#define ALLOW_IF(name, ...) {SYS_##name, SECCOMP_RET_ALLOW, {__VA_ARGS__}}
#define REFUSE(name, code) {SYS_##name, SECCOMP_RET_ERRNO | (code), {{0}}}
#define ARGUMENT_IS(index, value) {(index), UINT32_MAX, (uint32_t)(value)}
#define ARGUMENT_HAS(index, bits) {(index), (uint32_t)(bits), (uint32_t)(bits)}
#define ARGUMENT_LACKS(index, bits) {(index), (uint32_t)(bits), 0}
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/// Flags of clone(2): those that pthread_create passes, and those that create a process or a namespace.
enum {
    thread_flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD,
    process_flags = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET
        | CLONE_VFORK | CLONE_PTRACE | CLONE_PIDFD,
};

/// Signals below SIGRTMIN that glibc reserves. It sets a handler for one of them when a process starts its first thread.
enum { cancellation_signal = 32, identity_signal = 33 };

/// Calls of zygotes and workers that affect the calling process only.
static const struct rule common_rules[] = {
    ALLOW(futex),
    ALLOW(brk),
    ALLOW(munmap),
    ALLOW(mremap),
    ALLOW_IF(mprotect, ARGUMENT_LACKS(2, PROT_EXEC)),
    // Used by allocators and for the heap of a worker. MADV_GUARD_INSTALL and _REMOVE (102, 103) are newer than most headers.
    ALLOW_IF(madvise, ARGUMENT_IS(2, MADV_DONTNEED)),
    ALLOW_IF(madvise, ARGUMENT_IS(2, MADV_FREE)),
    ALLOW_IF(madvise, ARGUMENT_IS(2, MADV_HUGEPAGE)),
    ALLOW_IF(madvise, ARGUMENT_IS(2, MADV_POPULATE_WRITE)),
    ALLOW_IF(madvise, ARGUMENT_IS(2, 102)),
    ALLOW_IF(madvise, ARGUMENT_IS(2, 103)),
    REFUSE(madvise, EINVAL),
    ALLOW(clock_gettime),
    ALLOW(gettimeofday),
    ALLOW(getrandom),
    ALLOW(getpid),
    ALLOW(gettid),
    ALLOW(sched_yield),
    ALLOW(sched_getaffinity),
    // qsort(3) reads the size of the memory.
    ALLOW(sysinfo),
    ALLOW(rt_sigprocmask),
    ALLOW(set_robust_list),
    ALLOW(rseq),
    ALLOW(restart_syscall),
    ALLOW(exit),
    ALLOW(exit_group),
    // x264 lowers the priority of its look-ahead thread, and ignores a failure.
    REFUSE(getpriority, EPERM),
    REFUSE(setpriority, EPERM),
};

/// Additional calls of a zygote.
static const struct rule zygote_rules[] = {
    // Its only thread waits for jobs.
    ALLOW(recvmsg),
    ALLOW(sendmsg),
#ifdef SYS_poll
    ALLOW(poll),
#endif
    ALLOW(ppoll),
    ALLOW(read),
    ALLOW(write),
    ALLOW(writev),
    ALLOW(close),
    // The channel to a child that waits for its job.
    ALLOW_IF(socketpair, ARGUMENT_IS(0, AF_UNIX)),
    // Start and end of children. fork(3) of glibc is clone(2) with SIGCHLD among the flags.
    ALLOW_IF(clone, ARGUMENT_LACKS(0, process_flags)),
    REFUSE(clone3, ENOSYS),
    ALLOW(wait4),
    ALLOW(kill),
    ALLOW(tgkill),
    // Setup of children: descriptors, signals, limits, the mapped input, the filter.
    ALLOW(fcntl),
    ALLOW(dup3),
#ifdef SYS_dup2
    ALLOW(dup2),
#endif
    ALLOW(close_range),
    ALLOW(lseek),
    ALLOW(rt_sigaction),
    ALLOW(rt_sigreturn),
    ALLOW(getppid),
    ALLOW_IF(prlimit64, ARGUMENT_IS(0, 0)),
    ALLOW(prctl),
    ALLOW(seccomp),
    ALLOW_IF(mmap, ARGUMENT_LACKS(2, PROT_EXEC)),
    // Children inherit this filter, so it has to allow the calls with their file.
    ALLOW(pread64),
    ALLOW(pwrite64),
    ALLOW(ftruncate),
};

static void append(struct program *program, struct sock_filter instruction) {
    if (program->count < max_instructions) {
        program->instructions[program->count] = instruction;
    }
    // Beyond the limit only the count grows, and install() rejects the program.
    program->count++;
}

/// The offset of an argument's lower 32 bits in seccomp_data, on little-endian processors.
static uint32_t offset_of_argument(uint32_t index) {
    return (uint32_t)(offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void begin(struct program *program) {
    program->count = 0;
    append(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    append(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 1, 0));
    append(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
}

static void append_rule(struct program *program, struct rule rule) {
    unsigned char tests = 0;
    while (tests < max_tests && rule.tests[tests].mask != 0) {
        tests++;
    }
    // Each test has three instructions. A failed test jumps over the remaining tests and the verdict to the next rule.
    unsigned char rest = (unsigned char)(3 * tests + 1);
    append(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    append(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule.call, 0, rest));
    for (unsigned char index = 0; index < tests; index++) {
        const struct test test = rule.tests[index];
        rest -= 3;
        append(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(test.argument)));
        append(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, test.mask));
        append(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, test.value, 0, rest));
    }
    append(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, rule.verdict));
}

static void append_rules(struct program *program, const struct rule *rules, size_t count) {
    for (size_t index = 0; index < count; index++) {
        append_rule(program, rules[index]);
    }
}

int clinux_refuse_threads(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int install(struct program *program) {
    append(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    if (program->count > max_instructions) {
        errno = E2BIG;
        return -1;
    }
    struct sock_fprog code = {.len = program->count, .filter = program->instructions};
    // SPEC_ALLOW: the process holds no secrets that speculation could leak, and the mitigations would slow the encoder.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &code) == 0
        || (errno == EINVAL && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &code) == 0)) {
        return 1;
    }
    return errno == ENOSYS || errno == EINVAL ? 0 : -1;
}

int clinux_allow_zygote_calls(void) {
    struct program program;
    begin(&program);
    append_rules(&program, zygote_rules, COUNT_OF(zygote_rules));
    append_rules(&program, common_rules, COUNT_OF(common_rules));
    return install(&program);
}

int clinux_allow_worker_calls(const struct clinux_worker_calls *calls) {
    const struct rule own_rules[] = {
        ALLOW_IF(pwrite64, ARGUMENT_IS(0, calls->file)),
        ALLOW_IF(pread64, ARGUMENT_IS(0, calls->file)),
        ALLOW_IF(ftruncate, ARGUMENT_IS(0, calls->file)),
        ALLOW_IF(sendmsg, ARGUMENT_IS(0, calls->channel)),
        ALLOW_IF(mmap, ARGUMENT_LACKS(2, PROT_EXEC), ARGUMENT_HAS(3, MAP_ANONYMOUS)),
        // Messages that a library writes before it aborts are lost: the descriptor is closed.
        ALLOW_IF(write, ARGUMENT_IS(0, STDERR_FILENO)),
        ALLOW_IF(writev, ARGUMENT_IS(0, STDERR_FILENO)),
        ALLOW_IF(tgkill, ARGUMENT_IS(0, getpid()), ARGUMENT_IS(2, SIGABRT)),
        ALLOW_IF(prctl, ARGUMENT_IS(0, PR_SET_NAME)),
        REFUSE(prctl, EINVAL),
        // The arguments of clone3 are in memory, which a filter cannot read. After ENOSYS glibc uses clone.
        REFUSE(clone3, ENOSYS),
    };
    const struct rule thread_rules[] = {
        ALLOW_IF(clone, ARGUMENT_HAS(0, thread_flags), ARGUMENT_LACKS(0, process_flags)),
        ALLOW_IF(rt_sigaction, ARGUMENT_IS(0, cancellation_signal)),
        ALLOW_IF(rt_sigaction, ARGUMENT_IS(0, identity_signal)),
    };
    struct program program;
    begin(&program);
    append_rules(&program, own_rules, COUNT_OF(own_rules));
    if (calls->threads != 0) {
        append_rules(&program, thread_rules, COUNT_OF(thread_rules));
    }
    append_rules(&program, common_rules, COUNT_OF(common_rules));
    return install(&program);
}

#else

// There are no rules for this architecture.

int clinux_allow_zygote_calls(void) {
    return 0;
}

int clinux_allow_worker_calls(const struct clinux_worker_calls *calls) {
    (void)calls;
    return 0;
}

int clinux_refuse_threads(void) {
    errno = ENOSYS;
    return -1;
}

#endif

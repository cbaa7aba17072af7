#include "clinux_process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { max_descriptors = 4 };

static int argument_count;
static char **argument_values;

/// glibc calls constructors with the arguments of main.
__attribute__((constructor)) static void note_arguments(int count, char **values) {
    argument_count = count;
    argument_values = values;
}

const char *clinux_argument(int index) {
    return index < argument_count ? argument_values[index] : NULL;
}

pid_t clinux_fork(void) {
    return fork();
}

static void *end_after(void *mutex) {
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

int clinux_can_start_threads(int count) {
    enum { stack_size = 256 << 10, most = 64 };
    pthread_t threads[most];
    count = count < most ? count : most;
    char *stacks = mmap(NULL, (size_t)count * stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stacks == MAP_FAILED) {
        return 1;
    }
    // The threads end together, so that all of them exist at the same time.
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    int code = 0;
    int started = 0;
    while (started < count && code == 0) {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstack(&attributes, stacks + (size_t)started * stack_size, stack_size);
        code = pthread_create(&threads[started], &attributes, end_after, &mutex);
        pthread_attr_destroy(&attributes);
        started += code == 0;
    }
    pthread_mutex_unlock(&mutex);
    for (int index = 0; index < started; index++) {
        pthread_join(threads[index], NULL);
    }
    munmap(stacks, (size_t)count * stack_size);
    return code != EAGAIN;
}

uint64_t clinux_task_count(void) {
    unsigned long long count = 0;
    FILE *file = fopen("/proc/loadavg", "re");
    if (file != NULL) {
        if (fscanf(file, "%*s %*s %*s %*u/%llu", &count) != 1) {
            count = 0;
        }
        fclose(file);
    }
    // A /proc that shows only processes has no load average. This count has 16 bits.
    struct sysinfo info;
    return count == 0 && sysinfo(&info) == 0 ? info.procs : count;
}

int clinux_open_oom_score(int *score) {
    const int file = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char text[16] = "";
    if (file >= 0 && read(file, text, sizeof text - 1) <= 0) {
        close(file);
        return -1;
    }
    *score = atoi(text);
    return file;
}

void clinux_set_oom_score(int file, int score) {
    char text[16];
    const int length = snprintf(text, sizeof text, "%d", score);
    // Best effort: if it fails, the kernel chooses by size.
    const ssize_t written = write(file, text, (size_t)length);
    (void)written;
}

int clinux_trace(pid_t process) {
    return ptrace(PTRACE_ATTACH, process, NULL, NULL) == 0 ? 0 : -1;
}

int clinux_message_pair(int pair[2]) {
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

int clinux_send_message(int socket, const void *bytes, size_t count, const int *descriptors, int descriptor_count) {
    if (descriptor_count < 0 || descriptor_count > max_descriptors) {
        errno = EINVAL;
        return -1;
    }
    union {
        char space[CMSG_SPACE(sizeof(int) * max_descriptors)];
        struct cmsghdr alignment;
    } control;
    memset(&control, 0, sizeof control);
    struct iovec vector = {.iov_base = (void *)bytes, .iov_len = count};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};
    if (descriptor_count > 0) {
        const size_t size = sizeof(int) * (size_t)descriptor_count;
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(size);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(size);
        memcpy(CMSG_DATA(header), descriptors, size);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? -1 : 0;
}

ssize_t clinux_receive_message(int socket, void *bytes, size_t capacity, int *descriptors, int *descriptor_count) {
    union {
        char space[CMSG_SPACE(sizeof(int) * max_descriptors)];
        struct cmsghdr alignment;
    } control;
    struct iovec vector = {.iov_base = bytes, .iov_len = capacity};
    struct msghdr message = {
        .msg_iov = &vector, .msg_iovlen = 1, .msg_control = control.space, .msg_controllen = sizeof control.space};
    ssize_t received;
    do {
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (received < 0 && errno == EINTR);
    *descriptor_count = 0;
    if (received < 0) {
        return -1;
    }
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header != NULL; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        const int count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        for (int index = 0; index < count; index++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(header) + (size_t)index * sizeof(int), sizeof descriptor);
            if (*descriptor_count < max_descriptors) {
                descriptors[(*descriptor_count)++] = descriptor;
            } else {
                close(descriptor);
            }
        }
    }
    // A message without bytes has the length of an end of stream, so its receiver would not look for descriptors.
    const int is_empty_with_descriptors = received == 0 && *descriptor_count > 0;
    if (is_empty_with_descriptors || message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
        for (int index = 0; index < *descriptor_count; index++) {
            close(descriptors[index]);
        }
        *descriptor_count = 0;
        errno = EMSGSIZE;
        return -1;
    }
    return received;
}

/// Closes every descriptor from `first` on.
static int close_from(int first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned)first, ~0U, 0) == 0) {
        return 0;
    }
#endif
    const long limit = sysconf(_SC_OPEN_MAX);
    for (int descriptor = first; descriptor < (limit > 0 ? limit : 1024); descriptor++) {
        close(descriptor);
    }
    return 0;
}

int clinux_keep_only(const int *descriptors, int count) {
    int copies[max_descriptors];
    if (count < 0 || count > max_descriptors) {
        errno = EINVAL;
        return -1;
    }
    // Copied above the target numbers first: a descriptor may have the target number of another one.
    for (int index = 0; index < count; index++) {
        copies[index] = fcntl(descriptors[index], F_DUPFD_CLOEXEC, 3 + max_descriptors);
        if (copies[index] < 0) {
            return -1;
        }
    }
    for (int index = 0; index < count; index++) {
        if (dup2(copies[index], 3 + index) < 0) {
            return -1;
        }
    }
    return close_from(3 + count);
}

int clinux_use_null_device(void) {
    const int null = open("/dev/null", O_RDWR);
    if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0) {
        return -1;
    }
    if (null > STDERR_FILENO) {
        close(null);
    }
    return 0;
}

int clinux_die_with_parent(void) {
    return prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int clinux_no_new_privileges(void) {
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void clinux_name_thread(const char *name) {
    prctl(PR_SET_NAME, name);
}

uint64_t clinux_address_space(void) {
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%llu", &pages) != 1) {
            pages = 0;
        }
        fclose(file);
    }
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t clinux_cpu_time(pid_t process) {
    // The result of clock_getcpuclockid(3), without its system call, which checks whether the process exists.
    const clockid_t clock = (clockid_t)((~(unsigned)process << 3) | 2);
    struct timespec time = {0, 0};
    if (clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_nsec / 1000;
}

/// Sets both limits, but not above the hard limit of the process, which an unprivileged process cannot raise.
static int set_limit(int resource, uint64_t soft, uint64_t hard) {
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) {
        return -1;
    }
    limit.rlim_max = hard < limit.rlim_max ? hard : limit.rlim_max;
    limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
    return setrlimit(resource, &limit);
}

int clinux_forbid_core_dumps(void) {
    // For a limit of 1 the kernel writes no file and does not start a handler that core_pattern pipes to, which it does for 0.
    // A process whose hard limit is 0 cannot raise it.
    const struct rlimit none = {.rlim_cur = 1, .rlim_max = 1};
    return setrlimit(RLIMIT_CORE, &none) == 0 ? 0 : set_limit(RLIMIT_CORE, 0, 0);
}

int clinux_set_limits(const struct clinux_limits *limits) {
    const struct {
        int resource;
        uint64_t soft, hard;
    } all[] = {
        {RLIMIT_AS, limits->memory, limits->memory},
        {RLIMIT_CPU, limits->cpu_seconds, limits->cpu_seconds + 1},
        {RLIMIT_FSIZE, limits->file_bytes, limits->file_bytes},
        {RLIMIT_NPROC, limits->tasks, limits->tasks},
        {RLIMIT_NOFILE, limits->descriptors, limits->descriptors},
    };
    int status = 0;
    for (size_t index = 0; index < sizeof all / sizeof all[0] && status == 0; index++) {
        status = all[index].soft == 0 ? 0 : set_limit(all[index].resource, all[index].soft, all[index].hard);
    }
    return status;
}

int clinux_use_batch_scheduling(int is_batch) {
    const struct sched_param parameters = {.sched_priority = 0};
    return sched_setscheduler(0, is_batch ? SCHED_BATCH : SCHED_OTHER, &parameters);
}

uint64_t clinux_thread_cpu_time(void) {
    struct timespec taken = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &taken);
    return (uint64_t)taken.tv_sec * 1000000000 + (uint64_t)taken.tv_nsec;
}

void clinux_raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        set_limit(RLIMIT_NOFILE, limit.rlim_max, limit.rlim_max);
    }
}

int clinux_reap(struct clinux_child_exit *result) {
    int status = 0;
    struct rusage usage;
    pid_t pid;
    do {
        pid = wait4(-1, &status, WNOHANG, &usage);
    } while (pid < 0 && errno == EINTR);
    if (pid < 0 && errno == ECHILD) {
        return 0;
    }
    if (pid <= 0) {
        return (int)pid;
    }
    result->pid = pid;
    result->code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    result->user_microseconds = (uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec;
    result->system_microseconds = (uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec;
    result->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
    return 1;
}

int clinux_child_signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return -1;
    }
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void clinux_reset_signals(void) {
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        signal(signal_number, SIG_DFL);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

int clinux_semaphore_wait(sem_t *semaphore, int64_t nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    nanoseconds += end.tv_nsec;
    end.tv_sec += nanoseconds / 1000000000;
    end.tv_nsec = nanoseconds % 1000000000;
    int result;
    do {
        result = sem_clockwait(semaphore, CLOCK_MONOTONIC, &end);
    } while (result != 0 && errno == EINTR);
    return result;
}

#define _GNU_SOURCE
#include "csystemcalls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static char root[PATH_MAX];
static volatile csystemcalls_before before;
static csystemcalls_after after;

void csystemcalls_begin(const char *new_root, csystemcalls_before new_before, csystemcalls_after new_after) {
    strncpy(root, new_root, sizeof root - 1);
    after = new_after;
    before = new_before;
}

void csystemcalls_end(void) {
    before = NULL;
}

/// The function of libc, looked up once. Two threads that look it up at the same time find the same.
#define NEXT(name) \
    static _Atomic(__typeof__(&name)) next; \
    if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static int is_below_root(const char *path) {
    size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0);
}

/// A file without a name, or whose name is removed, has a path below its directory, too (proc(5)).
static int is_simulated_file(int fd) {
    if (!before) return 0;
    char link[32];
    char path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_below_root(path);
}

static int is_simulated_name(int directory, const char *name) {
    if (!before) return 0;
    if (name[0] == '/') return is_below_root(name);
    return directory != AT_FDCWD && is_simulated_file(directory);
}

/// Asks the hook. Returns 0 to go on, 1 to return `*result` with errno.
static int is_decided(const csystemcalls_event *event, ssize_t *result) {
    int decision = before(event);
    if (decision == 0) return 0;
    *result = decision == CSYSTEMCALLS_SKIP ? 0 : -1;
    if (decision > 0) errno = decision;
    return 1;
}

static ssize_t finish(csystemcalls_event *event, ssize_t result) {
    if (result >= 0) {
        int code = errno;
        if (event->call == csystemcalls_write) event->count = result;
        after(event);
        errno = code;
    }
    return result;
}

// MARK: - Contents of files

#define SIMULATE(is_simulated, event_value, real_call) \
    if (!(is_simulated)) return real_call; \
    csystemcalls_event event = event_value; \
    ssize_t decided; \
    if (is_decided(&event, &decided)) return decided; \
    return finish(&event, real_call)

#define EVENT(...) ((csystemcalls_event){__VA_ARGS__})

ssize_t write(int fd, const void *bytes, size_t count) {
    NEXT(write);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_write, fd, lseek(fd, 0, SEEK_CUR), bytes, (int64_t)count),
             next(fd, bytes, count));
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
    NEXT(pwrite);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_write, fd, offset, bytes, (int64_t)count),
             next(fd, bytes, count, offset));
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    return pwrite(fd, bytes, count, offset);
}

ssize_t pread(int fd, void *bytes, size_t count, off_t offset) {
    NEXT(pread);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_read, fd, offset, NULL, (int64_t)count),
             next(fd, bytes, count, offset));
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset) {
    return pread(fd, bytes, count, offset);
}

ssize_t sendfile(int out, int in, off_t *offset, size_t count) {
    NEXT(sendfile);
    SIMULATE(is_simulated_file(out), EVENT(csystemcalls_write, out, lseek(out, 0, SEEK_CUR), NULL, (int64_t)count),
             next(out, in, offset, count));
}

ssize_t sendfile64(int out, int in, off64_t *offset, size_t count) {
    return sendfile(out, in, offset, count);
}

int ftruncate(int fd, off_t length) {
    NEXT(ftruncate);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_truncate, fd, length), next(fd, length));
}

int ftruncate64(int fd, off64_t length) {
    return ftruncate(fd, length);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
    NEXT(fallocate);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_reserve, fd, offset, NULL, length), next(fd, mode, offset, length));
}

int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    return fallocate(fd, mode, offset, length);
}

int fsync(int fd) {
    NEXT(fsync);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_sync, fd), next(fd));
}

int fdatasync(int fd) {
    NEXT(fdatasync);
    SIMULATE(is_simulated_file(fd), EVENT(csystemcalls_sync, fd), next(fd));
}

// MARK: - Names

static int open_at(int directory, const char *name, int flags, mode_t mode) {
    NEXT(openat);
    int creates = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    SIMULATE(creates && is_simulated_name(directory, name),
             EVENT(csystemcalls_create, directory, .name = name), next(directory, name, flags, mode));
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode = va_arg(arguments, mode_t); \
        va_end(arguments); \
    }

int open(const char *name, int flags, ...) {
    MODE(flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

int open64(const char *name, int flags, ...) {
    MODE(flags)
    return open_at(AT_FDCWD, name, flags, mode);
}

int openat(int directory, const char *name, int flags, ...) {
    MODE(flags)
    return open_at(directory, name, flags, mode);
}

int openat64(int directory, const char *name, int flags, ...) {
    MODE(flags)
    return open_at(directory, name, flags, mode);
}

int fstatat(int directory, const char *name, struct stat *status, int flags) {
    NEXT(fstatat);
    SIMULATE(is_simulated_name(directory, name), EVENT(csystemcalls_inspect, directory, .name = name),
             next(directory, name, status, flags));
}

int linkat(int old_directory, const char *old, int directory, const char *name, int flags) {
    NEXT(linkat);
    SIMULATE(is_simulated_name(directory, name), EVENT(csystemcalls_link, directory, .name = name),
             next(old_directory, old, directory, name, flags));
}

int renameat(int old_directory, const char *old, int directory, const char *name) {
    NEXT(renameat);
    SIMULATE(is_simulated_name(directory, name), EVENT(csystemcalls_rename, directory, .name = name),
             next(old_directory, old, directory, name));
}

int unlinkat(int directory, const char *name, int flags) {
    NEXT(unlinkat);
    SIMULATE(is_simulated_name(directory, name), EVENT(csystemcalls_unlink, directory, .name = name),
             next(directory, name, flags));
}

int unlink(const char *name) {
    return unlinkat(AT_FDCWD, name, 0);
}

int mkdirat(int directory, const char *name, mode_t mode) {
    NEXT(mkdirat);
    SIMULATE(is_simulated_name(directory, name), EVENT(csystemcalls_make_directory, directory, .name = name),
             next(directory, name, mode));
}

int mkdir(const char *name, mode_t mode) {
    return mkdirat(AT_FDCWD, name, mode);
}

#include "clinux_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int clinux_memfd_create(const char *name) {
    return memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

enum { all_seals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL };

int clinux_memfd_seal(int fd) {
    return fcntl(fd, F_ADD_SEALS, all_seals);
}

int clinux_memfd_is_sealed(int fd) {
    const int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & all_seals) == all_seals;
}

int clinux_open_tmpfile(const char *directory, mode_t mode) {
    return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
}

int clinux_link_tmpfile(int fd, int directory_fd, const char *name) {
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, path, directory_fd, name, AT_SYMLINK_FOLLOW);
}

int clinux_open_directory(const char *path) {
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/// Writes the path of an open file. Returns its length, or 0 with errno.
static size_t path_of(int fd, char *path, size_t size) {
    char link[40];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, path, size);
    if (length < 0) {
        return 0;
    }
    if ((size_t)length == size) {
        errno = ENAMETOOLONG;
        return 0;
    }
    return (size_t)length;
}

/// Does what openat2 does with RESOLVE_BENEATH, but judges a path by where it leads. O_PATH opens a file without any effect on it.
static int open_if_beneath(int directory_fd, const char *path, int flags) {
    char root[PATH_MAX];
    char found[PATH_MAX];
    const int place = openat(directory_fd, path, O_PATH | O_CLOEXEC);
    if (place < 0) {
        return -1;
    }
    const size_t root_length = path_of(directory_fd, root, sizeof root);
    const size_t found_length = root_length == 0 ? 0 : path_of(place, found, sizeof found);
    int file = -1;
    if (found_length > root_length && memcmp(found, root, root_length) == 0 && found[root_length] == '/') {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", place);
        file = open(link, flags);
    } else if (found_length != 0) {
        errno = EXDEV;
    }
    const int code = errno;
    close(place);
    errno = code;
    return file;
}

int clinux_open_beneath(int directory_fd, const char *path) {
    const struct open_how how = {
        .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    const int file = (int)syscall(SYS_openat2, directory_fd, path, &how, sizeof how);
    // ENOSYS: before Linux 5.6. Filters of system calls refuse the call with either; systemd's RestrictSUIDSGID does, as it cannot
    // read `how`. EAGAIN: the path has `..`, and any file of the machine was renamed meanwhile.
    const int decides_by_end = file < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN);
    return decides_by_end ? open_if_beneath(directory_fd, path, (int)how.flags) : file;
}

ssize_t clinux_sendfile(int out_fd, int in_fd, int64_t *offset, size_t count) {
    off_t position = (off_t)*offset;
    ssize_t sent = sendfile(out_fd, in_fd, &position, count);
    *offset = (int64_t)position;
    return sent;
}

int clinux_is_in_page_cache(int fd, int64_t offset, size_t length) {
    enum { largest = 1 << 20, smallest_page = 4096 };
    unsigned char pages[largest / smallest_page + 1];
    if (length == 0 || length > largest) {
        return length == 0;
    }
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t lead = (size_t)offset % page;
    const size_t mapped = lead + length;
    void *base = mmap(NULL, mapped, PROT_READ, MAP_SHARED, fd, (off_t)(offset - (int64_t)lead));
    if (base == MAP_FAILED) {
        return 1;
    }
    const size_t count = (mapped + page - 1) / page;
    int is_cached = 1;
    if (count <= sizeof pages && mincore(base, mapped, pages) == 0) {
        for (size_t index = 0; index < count && is_cached; index++) {
            is_cached = pages[index] & 1;
        }
    }
    munmap(base, mapped);
    return is_cached;
}

int clinux_openat(int directory_fd, const char *path, int flags, mode_t mode) {
    return openat(directory_fd, path, flags | O_CLOEXEC, mode);
}

int clinux_flush_output(void) {
    if (fflush(stdout) != 0) {
        return -1;
    }
    if (ferror(stdout)) {
        errno = EIO;
        return -1;
    }
    return 0;
}

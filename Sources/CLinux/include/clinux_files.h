#ifndef GIFREEL_CLINUX_FILES_H
#define GIFREEL_CLINUX_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/// memfd_create(2) with MFD_CLOEXEC | MFD_ALLOW_SEALING. Returns a descriptor, or -1 with errno.
int clinux_memfd_create(const char *name);

/// Seals a memfd against writing, growing, shrinking and further sealing. Returns 0, or -1 with errno.
int clinux_memfd_seal(int fd);

/// Nonzero if seals prevent every change of a memfd.
int clinux_memfd_is_sealed(int fd);

/// open(2) of an unnamed file in `directory` with O_TMPFILE | O_RDWR | O_CLOEXEC. Returns a descriptor, or -1 with errno.
int clinux_open_tmpfile(const char *directory, mode_t mode);

/// Gives an O_TMPFILE descriptor a name (linkat(2) through /proc/self/fd). Fails with EEXIST if the name exists.
int clinux_link_tmpfile(int fd, int directory_fd, const char *name);

/// open(2) of a directory with O_PATH | O_DIRECTORY | O_CLOEXEC. Returns a descriptor, or -1 with errno.
int clinux_open_directory(const char *path);

/// openat2(2) of an existing file for reading, with O_CLOEXEC, O_NOCTTY and O_NONBLOCK. Neither `..` nor a symbolic link may lead out of
/// `directory_fd` (RESOLVE_BENEATH), and links of /proc are not followed. Returns a descriptor, or -1 with errno: EXDEV for a path that
/// leads out. Where openat2 is missing or refused, a path may lead out and back again, and its end decides.
int clinux_open_beneath(int directory_fd, const char *path);

/// sendfile(2), which Swift's Glibc module does not offer on every architecture.
ssize_t clinux_sendfile(int out_fd, int in_fd, int64_t *offset, size_t count);

/// Whether all pages of a range of a file are in the page cache (mincore(2)). Returns nonzero if they are, or if the kernel cannot
/// say. `length` is at most 1 MiB.
int clinux_is_in_page_cache(int fd, int64_t offset, size_t length);

/// openat(2) with O_CLOEXEC. Swift cannot import the variadic original.
int clinux_openat(int directory_fd, const char *path, int flags, mode_t mode);

/// Writes what stdio has buffered for standard output (fflush(3)). Returns 0, or -1 with errno: EIO for the failure of an earlier
/// write, since stdio does not keep its errno.
int clinux_flush_output(void);

#endif

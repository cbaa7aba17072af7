#include "clinux_confinement.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// The numbers are the same on every architecture; headers older than the kernel lack them.
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif
#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif

enum { create_ruleset_version = 1 };

/// struct landlock_ruleset_attr of version 6. Older kernels accept it if the fields they do not know are zero.
struct ruleset {
    uint64_t file_accesses;
    uint64_t network_accesses;
    uint64_t scopes;
};

/// Every right that a version of landlock can restrict (linux/landlock.h).
static struct ruleset all_rights(int version) {
    struct ruleset rules = {.file_accesses = (UINT64_C(1) << 13) - 1};
    if (version >= 2) {
        rules.file_accesses |= UINT64_C(1) << 13;  // linking and renaming between directories
    }
    if (version >= 3) {
        rules.file_accesses |= UINT64_C(1) << 14;  // truncating
    }
    if (version >= 4) {
        rules.network_accesses = 3;  // TCP: bind and connect
    }
    if (version >= 5) {
        rules.file_accesses |= UINT64_C(1) << 15;  // ioctl on devices
    }
    if (version >= 6) {
        rules.scopes = 3;  // abstract Unix sockets, signals
    }
    return rules;
}

int clinux_landlock_version(void) {
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, create_ruleset_version);
    if (version >= 0) {
        return (int)version;
    }
    // The kernel never refuses this query. EPERM comes from a system call filter, such as that of a container runtime.
    return errno == ENOSYS || errno == EOPNOTSUPP || errno == EPERM ? 0 : -1;
}

int clinux_deny_files_and_network(void) {
    const int version = clinux_landlock_version();
    if (version <= 0) {
        return version;
    }
    const struct ruleset rules = all_rights(version);
    const long ruleset = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    if (ruleset < 0) {
        return -1;
    }
    const long status = syscall(SYS_landlock_restrict_self, (int)ruleset, 0);
    const int code = errno;
    close((int)ruleset);
    errno = code;
    return status == 0 ? version : -1;
}

int clinux_drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    memset(none, 0, sizeof none);
    if (syscall(SYS_capset, &header, none) == 0) {
        return 0;
    }
    // A filter of system calls may refuse capset, as systemd's @privileged does. Then there must be nothing to drop.
    const int code = errno;
    struct __user_cap_data_struct held[_LINUX_CAPABILITY_U32S_3];
    memset(held, 0xff, sizeof held);
    if (syscall(SYS_capget, &header, held) == 0 && memcmp(held, none, sizeof none) == 0) {
        return 0;
    }
    errno = code;
    return -1;
}

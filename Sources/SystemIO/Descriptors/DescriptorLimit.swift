internal import CLinux
internal import Glibc

/// This process's limit on open file descriptors (RLIMIT_NOFILE).
package enum DescriptorLimit {
    /// The number of descriptors that may be open at the same time.
    package static var current: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }

    /// Whether fewer than `spare` descriptors are available. Briefly opens up to `spare` descriptors to find out.
    package static func isShort(of spare: Int = 8) -> Bool {
        var taken: [Int32] = []
        defer { for number in taken { close(number) } }
        for _ in 0..<spare {
            let number = clinux_openat(AT_FDCWD, "/dev/null", O_RDONLY, 0)
            guard number >= 0 else { return errno == EMFILE || errno == ENFILE }
            taken.append(number)
        }
        return false
    }
}

/// What of the kernel's confinement holds in the zygote, and with it in every worker.
package struct Confinement: Sendable, Equatable {
    /// Only the system calls on a list are allowed (seccomp).
    package var filtersCalls: Bool
    /// The kernel's version of landlock, by which no file can be opened and nothing connected; 0 where it has none.
    package var landlockVersion: Int

    package init(filtersCalls: Bool, landlockVersion: Int) {
        self.filtersCalls = filtersCalls
        self.landlockVersion = landlockVersion
    }

    /// What is missing, in words; empty where all is there.
    package var missing: [String] {
        (filtersCalls ? [] : ["seccomp"]) + (landlockVersion > 0 ? [] : ["landlock"])
    }
}

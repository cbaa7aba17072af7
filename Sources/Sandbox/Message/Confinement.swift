/// The kernel features that confine the zygote and every worker.
package struct Confinement: Sendable, Equatable {
    /// Whether only the system calls on a list are allowed (seccomp).
    package var filtersCalls: Bool
    /// The kernel's version of landlock, which forbids opening files and connecting; 0 without it.
    package var landlockVersion: Int

    package init(filtersCalls: Bool, landlockVersion: Int) {
        self.filtersCalls = filtersCalls
        self.landlockVersion = landlockVersion
    }

    /// The names of the missing features.
    package var missing: [String] {
        (filtersCalls ? [] : ["seccomp"]) + (landlockVersion > 0 ? [] : ["landlock"])
    }
}

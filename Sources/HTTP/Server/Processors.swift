internal import Glibc

/// The processors this process may run on.
package enum Processors {
    /// How many there are, at least one.
    package static var available: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

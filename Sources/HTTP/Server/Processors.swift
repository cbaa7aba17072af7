internal import Glibc

/// The machine's processors.
package enum Processors {
    /// How many are online, at least one.
    package static var available: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

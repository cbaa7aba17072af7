internal import CLinux

/// The program. It has a file of its own because the commands depend on the composition root, which depends on this type.
package enum Gifreel {
    package static let version = "0.2.0"

    /// The revision of the source, with `-dirty` if it had changes; empty if the build did not say.
    package static let revision = String(cString: clinux_build_revision())

    /// Version and revision.
    package static let description = revision.isEmpty ? version : "\(version) (\(revision))"
}

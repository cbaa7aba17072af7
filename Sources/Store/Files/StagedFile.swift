internal import Glibc
internal import Synchronization
package import SystemIO

/// A file to write a new rendition into before it is published.
///
/// A worker process may use its descriptor's number. Publish the file only when no other process can write to it any more: a
/// later change is detected by its SHA-256, and the rendition is discarded. A file that is released unpublished leaves nothing
/// behind. Any thread.
package final class StagedFile: Sendable {
    /// Open for reading and writing.
    package let descriptor: SharedDescriptor
    /// Its name in `staging/`, where files cannot be named later.
    let name: String?
    /// The directory in which it can be published; nil for a file in memory.
    let files: ObjectFiles?
    /// Why the file is in memory; nil if on disk.
    let reason: UnstoredReason?
    private let isTaken = Atomic(false)

    /// - Parameter reason: Why the disk refused the file, for a file in memory. Its rendition is served but never stored.
    init(
        _ descriptor: SharedDescriptor, in files: ObjectFiles? = nil, name: String? = nil, because reason: UnstoredReason? = nil
    ) {
        self.descriptor = descriptor
        self.files = files
        self.name = name
        self.reason = reason
    }

    deinit {
        if let name { files?.removeStaged(name) }
    }

    /// The descriptor's number, valid during the lifetime of this object.
    package var number: Int32 { descriptor.number }

    /// Whether it is in memory, because the disk refused it.
    package var isInMemory: Bool { files == nil }

    /// Returns true for the first caller only: a file is published once.
    func take() -> Bool {
        !isTaken.exchange(true, ordering: .relaxed)
    }

    static func uniqueName() -> String { Hex.encode(UInt128.random(in: .min ... .max)) }
}

internal import Glibc
internal import Synchronization
package import SystemIO

/// A file to write a new rendition into, before it is published.
///
/// Its descriptor's number may be handed to a worker process. Publish only once no other process can write to it any more:
/// what changes afterwards is found out by its SHA-256 and thrown away. Nothing of it remains when it is let go unpublished.
/// Any thread.
package final class StagedFile: Sendable {
    /// Open for reading and writing.
    package let descriptor: SharedDescriptor
    /// Its name in `staging/`, on file systems without O_TMPFILE.
    let name: String?
    /// The directory it can be published in; nil for a file in memory.
    let directory: CacheDirectory?
    /// Why it is in memory.
    let reason: UnstoredReason?
    private let taken = Atomic(false)

    init(_ descriptor: SharedDescriptor, in directory: CacheDirectory, name: String?) {
        self.descriptor = descriptor
        self.directory = directory
        self.name = name
        reason = nil
    }

    /// A file in memory, for when the disk takes no more: it is answered from and never stored.
    init(inMemory descriptor: SharedDescriptor, because reason: UnstoredReason) {
        self.descriptor = descriptor
        self.reason = reason
        directory = nil
        name = nil
    }

    deinit {
        if let name { directory?.discard(stagedName: name) }
    }

    /// The descriptor's number, valid as long as this object lives.
    package var number: Int32 { descriptor.number }

    /// True when it lies in memory, since the disk would not have it.
    package var isInMemory: Bool { directory == nil }

    /// True for the first caller only: a file is published once.
    func take() -> Bool {
        !taken.exchange(true, ordering: .relaxed)
    }

    /// A name that no other staged file has.
    static func freshName() -> String {
        var generator = SystemRandomNumberGenerator()
        return String(generator.next(), radix: 16) + "-" + String(generator.next(), radix: 16)
    }
}

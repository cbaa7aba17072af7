internal import CLinux
internal import Glibc

/// A file in memory (memfd) that is written once and then sealed, after which no process can change it.
///
/// It passes a GIF from the fetcher to the worker process without a copy and without a race.
package struct MemoryFile: ~Copyable, Sendable {
    private let descriptor: OwnedDescriptor
    /// Bytes written so far.
    package private(set) var count = 0

    /// An empty file. `name` appears under `/proc` only.
    package init(name: String) throws(SystemError) {
        let number = clinux_memfd_create(name)
        guard number >= 0 else { throw SystemError.last("memfd_create") }
        descriptor = OwnedDescriptor(taking: number)
    }

    /// Appends all of `bytes`.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try DescriptorIO.write(bytes, to: descriptor.number)
        count += bytes.count
    }

    /// Seals the file for its readers.
    package consuming func seal() throws(SystemError) -> SharedDescriptor {
        guard clinux_memfd_seal(descriptor.number) == 0 else { throw SystemError.last("fcntl(F_ADD_SEALS)") }
        return SharedDescriptor(descriptor)
    }
}

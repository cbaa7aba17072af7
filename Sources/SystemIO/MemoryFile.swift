internal import CLinux
internal import Glibc

/// A file in memory (memfd) that is written once and then sealed: afterwards no one, in any process, can change it.
///
/// A GIF travels from the fetcher to the worker process in one, without being copied and without a race.
package struct MemoryFile: ~Copyable, Sendable {
    private let descriptor: OwnedDescriptor
    /// Bytes written so far.
    package private(set) var count = 0

    /// An empty file; `name` is only seen under `/proc`.
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

    /// Seals the file and gives it to its readers.
    package consuming func seal() throws(SystemError) -> SharedDescriptor {
        guard clinux_memfd_seal(descriptor.number) == 0 else { throw SystemError.last("fcntl(F_ADD_SEALS)") }
        return SharedDescriptor(descriptor)
    }
}

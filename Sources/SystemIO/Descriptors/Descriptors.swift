internal import CLinux
internal import Glibc
internal import Synchronization

/// The only owner of a file descriptor, which it closes at the end of its lifetime.
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid during the owner's lifetime.
    package let number: Int32

    /// Takes over an open descriptor, which no other code may close.
    package init(taking number: Int32) {
        self.number = number
    }

    deinit {
        Glibc.close(number)
    }

    /// Returns the descriptor without closing it.
    package consuming func release() -> Int32 {
        let number = number
        discard self
        return number
    }
}

/// A file descriptor with several owners. It is closed with the last reference.
///
/// Readers of a file read by position (`pread`, `sendfile` with an offset), never by the file's own offset, so that any number of
/// threads may read at the same time. Unlinking or evicting the file does not affect readers that hold its descriptor.
package final class SharedDescriptor: Sendable {
    /// The descriptor's number, valid during the lifetime of this object.
    package let number: Int32

    private let held = Mutex<(any AnyObject & Sendable)?>(nil)

    package init(_ descriptor: consuming OwnedDescriptor) {
        number = descriptor.release()
    }

    /// Holds an object until the descriptor is closed, in place of the one that it holds.
    package func hold(_ object: any AnyObject & Sendable) {
        // Released after the lock.
        let previous = held.withLock { held in
            defer { held = object }
            return held
        }
        withExtendedLifetime(previous) {}
    }

    deinit {
        Glibc.close(number)
    }

    /// The file's length in bytes.
    package func size() throws(SystemError) -> Int {
        var status = stat()
        guard fstat(number, &status) == 0 else { throw SystemError.last("fstat") }
        return Int(status.st_size)
    }

    /// Reads into `buffer` from `offset` on, and returns the number of bytes read: fewer than `buffer` holds only at the file's
    /// end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        try DescriptorIO.read(into: buffer, from: number, at: offset)
    }

    /// Reads `count` bytes from `offset` on; fewer only at the file's end.
    package func read(_ count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        try DescriptorIO.read(count, from: number, at: offset)
    }

    /// The whole file as an array; for small files and tests.
    package func readAll() throws(SystemError) -> [UInt8] {
        try DescriptorIO.read(try size(), from: number, at: 0)
    }
}

/// A file in memory (memfd) that is written once and then sealed, after which no process can change it.
///
/// It passes a GIF from the fetcher to the worker process without a copy and without a race.
package struct MemoryFile: ~Copyable, Sendable {
    /// The file for readers that follow while it is written. They may read the bytes up to ``count``, which do not change.
    package let reader: SharedDescriptor
    /// Bytes written so far.
    package private(set) var count = 0

    /// An empty file. `name` appears under `/proc` only.
    package init(name: String) throws(SystemError) {
        let number = clinux_memfd_create(name)
        guard number >= 0 else { throw SystemError.last("memfd_create") }
        reader = SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// Appends all of `bytes`.
    package mutating func append(_ bytes: UnsafeRawBufferPointer) throws(SystemError) {
        try DescriptorIO.write(bytes, to: reader.number)
        count += bytes.count
    }

    /// Seals the file for its readers.
    package consuming func seal() throws(SystemError) -> SharedDescriptor {
        guard clinux_memfd_seal(reader.number) == 0 else { throw SystemError.last("fcntl(F_ADD_SEALS)") }
        return reader
    }
}

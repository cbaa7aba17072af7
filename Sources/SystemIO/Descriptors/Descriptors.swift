internal import CLinux
internal import Glibc
internal import Synchronization

/// The sole owner of a file descriptor. Closes it when its lifetime ends.
package struct OwnedDescriptor: ~Copyable, Sendable {
    /// The descriptor's number, valid during the owner's lifetime.
    package let number: Int32

    /// Takes ownership of an open descriptor, which no other code may close.
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

/// A file descriptor with shared ownership, closed when the last reference is released.
///
/// Readers use positioned reads (`pread`, `sendfile` with an offset) and never the file offset, so any number of threads may
/// read at the same time. Unlinking or evicting the file does not affect readers that hold its descriptor.
package final class SharedDescriptor: Sendable {
    /// The descriptor's number, valid during the lifetime of this object.
    package let number: Int32

    private let held = Mutex<(any AnyObject & Sendable)?>(nil)

    package init(_ descriptor: consuming OwnedDescriptor) {
        number = descriptor.release()
    }

    /// Retains `object` until the descriptor is closed, in place of the object retained before.
    package func hold(_ object: any AnyObject & Sendable) {
        // Released after unlocking.
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

    /// Reads into `buffer` from `offset`. Returns the number of bytes read, which is less than the size of `buffer` only at the
    /// end of the file.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        try DescriptorIO.read(into: buffer, from: number, at: offset)
    }

    /// Reads `count` bytes from `offset`; fewer only at the end of the file.
    package func read(_ count: Int, at offset: Int) throws(SystemError) -> [UInt8] {
        try DescriptorIO.read(count, from: number, at: offset)
    }

    /// Returns the whole file; for small files and tests.
    package func readAll() throws(SystemError) -> [UInt8] {
        try DescriptorIO.read(try size(), from: number, at: 0)
    }
}

/// An in-memory file (memfd) that is written once and then sealed, after which no process can change it.
///
/// It passes a GIF from the fetcher to the worker process without copies or races.
package struct MemoryFile: ~Copyable, Sendable {
    /// The file for concurrent readers. They may read the bytes up to ``count``, which do not change.
    package let reader: SharedDescriptor
    /// The number of bytes written so far.
    package private(set) var count = 0

    /// Creates an empty file. `name` appears only under `/proc`.
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

    /// Seals the file and returns it.
    package consuming func seal() throws(SystemError) -> SharedDescriptor {
        guard clinux_memfd_seal(reader.number) == 0 else { throw SystemError.last("fcntl(F_ADD_SEALS)") }
        return reader
    }
}

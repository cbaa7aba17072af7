internal import Glibc

/// An open file that several readers share; closed when the last of them lets go.
///
/// Reading goes by position (`pread`, `sendfile` with an offset), never by the file's own offset, so that any number
/// of threads may read at once. Unlinking or evicting the file while it is held changes nothing for its readers.
package final class SharedDescriptor: Sendable {
    /// The descriptor's number, valid as long as this object lives.
    package let number: Int32

    package init(_ descriptor: consuming OwnedDescriptor) {
        number = descriptor.release()
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

    /// Fills `buffer` from `offset` on, and returns how many bytes there were: fewer only at the file's end.
    package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(SystemError) -> Int {
        try DescriptorIO.read(into: buffer, from: number, at: offset)
    }

    /// The whole file as an array; for small files and tests.
    package func readAll() throws(SystemError) -> [UInt8] {
        let count = try size()
        var bytes = [UInt8](repeating: 0, count: count)
        var failure: SystemError?
        let read = bytes.withUnsafeMutableBytes { buffer in
            do throws(SystemError) {
                return try self.read(into: buffer, at: 0)
            } catch {
                failure = error
                return 0
            }
        }
        if let failure { throw failure }
        bytes.removeLast(count - read)
        return bytes
    }
}

internal import Glibc

/// Read and write loops over descriptors. They repeat a call that a signal interrupted and continue after a partial transfer.
package enum DescriptorIO {
    /// Writes all of `bytes`. Blocks, also on a non-blocking descriptor, for which it waits until that takes more.
    ///
    /// SIGPIPE must be blocked or ignored on the calling thread, so that a closed pipe is an error and not a signal.
    ///
    /// - Throws: ``SystemError``; part of the bytes may have been written.
    package static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
        var written = 0
        try write(bytes, to: descriptor, written: &written)
    }

    /// Writes all of `bytes` as ``write(_:to:)`` does.
    ///
    /// - Parameter written: Grows by the number of bytes that were written, also where this throws.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, written: inout Int
    ) throws(SystemError) {
        guard let base = bytes.baseAddress else { return }
        var done = 0
        while done < bytes.count {
            let count = Glibc.write(descriptor, base + done, bytes.count - done)
            if count >= 0 {
                done += count
                written += count
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: try waitUntilWritable(descriptor)
            default: throw .last("write")
            }
        }
    }

    private static func waitUntilWritable(_ descriptor: Int32) throws(SystemError) {
        var interest = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
        while poll(&interest, 1, -1) < 0 {
            guard errno == EINTR else { throw .last("poll") }
        }
    }

    /// Writes all of `bytes` to a file from `offset` on, without moving the file's own offset.
    ///
    /// - Throws: ``SystemError``; part of the bytes may have been written.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int
    ) throws(SystemError) {
        guard let base = bytes.baseAddress else { return }
        var done = 0
        while done < bytes.count {
            let count = try retryingOnInterrupt("pwrite") {
                pwrite(descriptor, base + done, bytes.count - done, off_t(offset + done))
            }
            // Otherwise the loop might not end.
            guard count > 0 else { throw SystemError("pwrite", code: EIO) }
            done += count
        }
    }

    /// Reads into `buffer` from `offset` of a file on, without moving the file's own offset.
    ///
    /// - Returns: The number of bytes read: fewer than `buffer` holds only at the file's end.
    package static func read(
        into buffer: UnsafeMutableRawBufferPointer, from descriptor: Int32, at offset: Int
    ) throws(SystemError) -> Int {
        guard let base = buffer.baseAddress else { return 0 }
        var done = 0
        while done < buffer.count {
            let count = try retryingOnInterrupt("pread") {
                pread(descriptor, base + done, buffer.count - done, off_t(offset + done))
            }
            if count == 0 { break }
            done += count
        }
        return done
    }
}

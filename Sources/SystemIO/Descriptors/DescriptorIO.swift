internal import Glibc

/// Read and write loops for descriptors. They retry calls interrupted by a signal and continue after partial transfers.
package enum DescriptorIO {
    /// Writes all of `bytes`. Blocks even on a non-blocking descriptor.
    ///
    /// SIGPIPE must be blocked or ignored on the calling thread, so that a closed pipe causes an error instead of a signal.
    ///
    /// - Throws: ``SystemError``; some of the bytes may have been written.
    package static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(SystemError) {
        var written = 0
        try write(bytes, to: descriptor, written: &written)
    }

    /// Writes all of `bytes` as ``write(_:to:)`` does.
    ///
    /// - Parameter written: Incremented by the number of bytes written, even if this throws.
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
            case EAGAIN: try wait(for: POLLOUT, on: descriptor)
            default: throw .last("write")
            }
        }
    }

    /// Writes all of `bytes` as ``write(_:to:)-(UnsafeRawBufferPointer,_)`` does.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) throws(SystemError) {
        try bytes.span.bytes.withUnsafeBytes { buffer throws(SystemError) in try write(buffer, to: descriptor) }
    }

    /// Waits until poll(2) reports `event`, an error or a hang-up.
    private static func wait(for event: Int32, on descriptor: Int32) throws(SystemError) {
        var interest = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        while poll(&interest, 1, -1) < 0 {
            guard errno == EINTR else { throw .last("poll") }
        }
    }

    /// Writes all of `bytes` at `offset`, without moving the file offset.
    ///
    /// - Throws: ``SystemError``; some of the bytes may have been written.
    package static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int
    ) throws(SystemError) {
        guard let base = bytes.baseAddress else { return }
        var done = 0
        while done < bytes.count {
            let count = try retryingOnInterrupt("pwrite") {
                pwrite(descriptor, base + done, bytes.count - done, off_t(offset + done))
            }
            // A write of 0 bytes could make the loop endless.
            guard count > 0 else { throw SystemError("pwrite", code: EIO) }
            done += count
        }
    }

    /// Writes all of `bytes` at `offset`, as the overload for buffers does.
    package static func write(_ bytes: [UInt8], to descriptor: Int32, at offset: Int) throws(SystemError) {
        try bytes.span.bytes.withUnsafeBytes { buffer throws(SystemError) in try write(buffer, to: descriptor, at: offset) }
    }

    /// Reads into `buffer` from `offset`, without moving the file offset.
    ///
    /// - Returns: The number of bytes read, which is less than the size of `buffer` only at the end of the file.
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

    /// Reads up to `count` bytes from `offset`, without moving the file offset.
    ///
    /// - Returns: The bytes, fewer than `count` only at the end of the file.
    package static func read(_ count: Int, from descriptor: Int32, at offset: Int) throws(SystemError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var span = bytes.mutableSpan
        let done = try span.withUnsafeMutableBytes { buffer throws(SystemError) in
            try read(into: buffer, from: descriptor, at: offset)
        }
        bytes.removeLast(count - done)
        return bytes
    }

    /// Reads from the current file offset to the end of the file, pipe or socket, and calls `body` with each piece. Blocks even
    /// on a non-blocking descriptor.
    package static func readToEnd(
        of descriptor: Int32, _ body: (UnsafeRawBufferPointer) throws(SystemError) -> Void
    ) throws(SystemError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
            if count == 0 { return }
            if count > 0 {
                try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                continue
            }
            switch errno {
            case EINTR: continue
            case EAGAIN: try wait(for: POLLIN, on: descriptor)
            default: throw .last("read")
            }
        }
    }
}

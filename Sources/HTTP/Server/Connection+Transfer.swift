internal import CLinux
internal import Glibc
internal import SystemIO

enum SendProgress {
    case done
    /// The socket accepts no more bytes for now.
    case blocked
    case outOfBudget
    /// The next piece of the file is not in the page cache.
    case notLoaded
    case failed
}

enum Arrival {
    case bytes(Int)
    case nothing
    /// The client has closed its sending half, or the connection is broken.
    case end
}

/// Reads and writes on the connection's socket. They never block.
extension Connection {
    /// Reads the bytes that have arrived, up to the size of `space`.
    func receive(into space: UnsafeMutableRawBufferPointer) -> Arrival {
        guard isReadable, space.count > 0 else { return .nothing }
        while true {
            let read = recv(token.descriptor, space.baseAddress, space.count, 0)
            if read > 0 {
                // A short read means that the kernel has no more bytes. It reports the next ones (epoll(7)).
                if read < space.count, !peerHasClosed { isReadable = false }
                return .bytes(read)
            }
            if read == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                isReadable = false
                return .nothing
            default: return .end
            }
        }
    }

    /// The number of bytes that a connection may transfer in one turn before others get theirs.
    static let turnBudget = 2 * 1024 * 1024

    /// Sends a head, then `body` if it is in memory. The unsent rest of the head becomes the first of the connection's
    /// segments; the unsent rest of `body` stays in `body`.
    func sendHead(_ bytes: UnsafeRawBufferPointer, with body: inout Segment?, isFollowed: Bool) -> SendProgress {
        let sent: Int
        if case .bytes(let content, let range) = body {
            sent = content.withUnsafeBytes { sendBoth(bytes, $0.slice(range), isFollowed: isFollowed) }
            if sent >= bytes.count {
                let taken = sent - bytes.count
                body = taken == range.count ? nil : .bytes(content, range.lowerBound + taken..<range.upperBound)
                // A socket that accepts only some of the bytes is full, as if it had returned EAGAIN. The poller reports when
                // it accepts more.
                return body == nil ? .done : .blocked
            }
        } else {
            sent = send(bytes, isFollowed: isFollowed)
        }
        if sent == bytes.count { return .done }
        guard sent >= 0 else { return .failed }
        outgoing.append(Segment(Array(bytes.slice(sent..<bytes.count))))
        return .blocked
    }

    /// Sends the connection's segments in order, and keeps those that the socket does not accept.
    func sendOutgoing() -> SendProgress {
        var segments = outgoing[...]
        outgoing = []
        while var segment = segments.popFirst() {
            let progress = transmit(&segment, isFollowed: !segments.isEmpty)
            if progress == .done { continue }
            outgoing = [segment] + segments
            return progress
        }
        return .done
    }

    /// Sends as much of a segment as the socket and the budget allow, and leaves the rest in it.
    func transmit(_ segment: inout Segment, isFollowed: Bool) -> SendProgress {
        guard isWritable else { return .blocked }
        guard budget > 0 else { return .outOfBudget }
        let sent: Int? =
            switch segment {
            case .bytes(let content, let range):
                content.withUnsafeBytes { send($0.slice(range), isFollowed: isFollowed) }
            case .file(let file, let range):
                if let piece = readyPiece(of: file, range) { sendFile(file, piece) } else { nil }
            }
        guard let sent else { return .notLoaded }
        if sent < 0 { return .failed }
        if sent == segment.count {
            loadedEnd = 0
            return .done
        }
        segment = segment.dropping(sent)
        return isWritable ? .outOfBudget : .blocked
    }

    /// Sends an interim response, or omits it if the socket accepts no bytes for now, because clients can do without it.
    ///
    /// - Returns: False if the connection is broken, or accepted only part of the response, after which nothing can follow.
    func sendContinue() -> Bool {
        let line: StaticString = "HTTP/1.1 100 Continue\r\n\r\n"
        let sent = attempt { clinux_send(token.descriptor, line.utf8Start, line.utf8CodeUnitCount, 0) }
        if sent <= 0 { return sent == 0 }
        sentBytes += sent
        return sent == line.utf8CodeUnitCount
    }

    /// Bytes acknowledged by the client. The kernel's buffers hold megabytes and accept more only once a third is free, so the
    /// bytes that they have accepted do not measure the client's speed.
    var acknowledgedBytes: Int {
        sentBytes - max(0, Int(clinux_unacknowledged(token.descriptor)))
    }

    /// Sends bytes from memory. Returns the number of bytes accepted, or -1 if the connection is broken.
    private func send(_ bytes: UnsafeRawBufferPointer, isFollowed: Bool) -> Int {
        var done = 0
        while done < bytes.count {
            let sent = attempt {
                clinux_send(token.descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, isFollowed ? 1 : 0)
            }
            if sent < 0 { return -1 }
            if sent == 0 { break }
            done += sent
        }
        count(done)
        return done
    }

    /// Sends two buffers in one call. Returns the number of bytes accepted, or -1 if the connection is broken.
    private func sendBoth(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, isFollowed: Bool
    ) -> Int {
        let sent = attempt {
            clinux_send_both(
                token.descriptor, first.baseAddress, first.count, second.baseAddress, second.count, isFollowed ? 1 : 0)
        }
        if sent > 0 { count(sent) }
        return sent
    }

    /// Repeats a system call that signals interrupt. Returns its result, 0 if the socket is full, or -1 if the connection is
    /// broken.
    @inline(__always)
    private func attempt(_ send: () -> Int) -> Int {
        while true {
            let sent = send()
            if sent >= 0 { return sent }
            if errno == EINTR { continue }
            guard errno == EAGAIN else { return -1 }
            isWritable = false
            return 0
        }
    }

    /// Returns the next piece of a file that can be sent without waiting for a disk; nil if it is not in the page cache.
    private func readyPiece(of file: ServedFile, _ range: Range<Int>) -> Range<Int>? {
        let piece = ServedFile.piece(of: range)
        // A loaded piece is not checked again: if memory is short, its pages could be evicted over and over.
        if range.lowerBound < loadedEnd { return range.lowerBound..<min(piece.upperBound, loadedEnd) }
        return file.isInPageCache(piece) ? piece : nil
    }

    /// Sends a piece of a file from the page cache. Returns the number of bytes accepted, or -1 if the connection or file is
    /// broken.
    private func sendFile(_ file: ServedFile, _ range: Range<Int>) -> Int {
        var offset = Int64(range.lowerBound)
        let end = Int64(range.upperBound)
        while offset < end {
            let sent = clinux_sendfile(token.descriptor, file.descriptor.number, &offset, Int(end - offset))
            if sent > 0 { continue }
            if sent < 0, errno == EINTR { continue }
            guard sent < 0, errno == EAGAIN else {
                // Other errors are those of the connection.
                if sent == 0 || errno == EIO { file.onDamage?() }
                return -1
            }
            isWritable = false
            break
        }
        let done = Int(offset) - range.lowerBound
        count(done)
        return done
    }

    private func count(_ sent: Int) {
        exchange.sentBytes += sent
        sentBytes += sent
        budget -= sent
    }
}

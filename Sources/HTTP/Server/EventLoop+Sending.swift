internal import CLinux
internal import Glibc
internal import SystemIO

/// From bytes to the socket.
extension EventLoop {
    /// Bytes up to which a body is copied behind its head: that costs less than handing the kernel two pieces.
    private static let copyLimit = 4096

    /// What became of an attempt to send.
    enum Progress {
        case done
        /// The socket takes no more for now.
        case blocked
        case outOfBudget
        case failed
    }

    /// Sends the head in ``output`` and then the body, which is left out to HEAD and where the status has none.
    func send(
        _ connection: Connection, _ body: consuming Segment?, more: ArraySlice<Segment> = [], _ headers: HTTPHeaders,
        _ head: RequestHead
    ) {
        let hasBody = head.method != .head && !HTTPStatus.isBodiless(connection.exchange.status)
        if !hasBody || body?.count == 0 { body = nil }
        let more = hasBody ? more : []
        // Few bytes in memory go out with their head, in one call, and very few in one piece with it.
        if case .bytes(let content, let range) = body, range.count <= Self.copyLimit {
            content.withUnsafeBytes { output.append($0.slice(range)) }
            body = nil
        }
        let isLast = connection.exchange.closes
        if !isLast, !connection.hasPipelined, more.isEmpty, body?.isInMemory ?? true, connection.isWritable {
            stage(connection, body, headers, head)
            return
        }
        // What is about to be closed keeps its last bytes until then, so that they and the end go in one packet.
        let isFollowed = body.map { !$0.isInMemory } ?? false || !more.isEmpty
        if isLast && isFollowed { clinux_cork(connection.token.descriptor) }
        var progress = sendHead(connection, output.bytes, with: &body, isFollowed: isFollowed || isLast)
        if progress == .done, var segment = body {
            progress = transmit(connection, &segment, isFollowed: !more.isEmpty)
            body = progress == .done ? nil : segment
        }
        if progress == .done || progress == .blocked || progress == .outOfBudget {
            if let body { connection.outgoing.append(body) }
            if !more.isEmpty { connection.outgoing.append(contentsOf: more) }
            if progress == .done, !more.isEmpty { progress = transmitOutgoing(connection) }
        }
        settle(connection, progress) {
            record(connection, headers, head, isComplete: $0)
        } draft: {
            draft(connection, headers, head)
        }
    }

    /// Goes on after an attempt to send a whole answer.
    func settle(
        _ connection: Connection, _ progress: Progress, record: (_ isComplete: Bool) -> Void, draft: () -> AccessDraft?
    ) {
        switch progress {
        case .done:
            record(true)
            finish(connection)
        case .failed:
            record(false)
            close(connection)
        case .blocked, .outOfBudget:
            connection.draft = draft()
            connection.phase = .sending
            if progress == .blocked { watchRate(connection, moved: acknowledgedBytes(connection)) }
        }
    }

    /// Goes on with what is left to send. Returns whether the connection can go on in its turn.
    func flush(_ connection: Connection) -> Bool {
        switch transmitOutgoing(connection) {
        case .done:
            if connection.stream != nil { return continueStream(connection) }
            record(connection, isComplete: true)
            finish(connection)
            return true
        case .blocked:
            if connection.deadline == .max { watchRate(connection, moved: acknowledgedBytes(connection)) }
            return false
        case .outOfBudget: return true
        case .failed:
            close(connection)
            return false
        }
    }

    /// Sends an interim answer; the buffer of a connection that is still sending its request has room for it.
    func sendContinue(_ connection: Connection) {
        let line: StaticString = "HTTP/1.1 100 Continue\r\n\r\n"
        let sent = clinux_send(connection.token.descriptor, line.utf8Start, line.utf8CodeUnitCount, 0)
        if sent != line.utf8CodeUnitCount { close(connection) }
        connection.sentBytes += max(0, sent)
    }

    /// Sends a head, and `body` with it where that is in memory; what the socket does not take of the head goes in front
    /// of the connection's segments, what it does not take of `body` stays there.
    func sendHead(
        _ connection: Connection, _ bytes: UnsafeRawBufferPointer, with body: inout Segment?, isFollowed: Bool
    ) -> Progress {
        let sent: Int
        if case .bytes(let content, let range) = body {
            sent = content.withUnsafeBytes { write(connection, bytes, $0.slice(range), isFollowed: isFollowed) }
            if sent >= bytes.count {
                let taken = sent - bytes.count
                body = taken == range.count ? nil : .bytes(content, range.lowerBound + taken..<range.upperBound)
                return body == nil ? .done : .blocked
            }
        } else {
            sent = write(connection, bytes, isFollowed: isFollowed)
        }
        if sent == bytes.count { return .done }
        guard sent >= 0 else { return .failed }
        connection.outgoing.append(Segment(Array(bytes.slice(sent..<bytes.count))))
        return .blocked
    }

    /// Sends the connection's segments one after the other.
    private func transmitOutgoing(_ connection: Connection) -> Progress {
        var segments = connection.outgoing[...]
        connection.outgoing = []
        while var segment = segments.popFirst() {
            let progress = transmit(connection, &segment, isFollowed: !segments.isEmpty)
            if progress == .done { continue }
            connection.outgoing = [segment] + segments
            return progress
        }
        return .done
    }

    /// Sends a segment as far as it goes, and leaves the rest in it.
    private func transmit(_ connection: Connection, _ segment: inout Segment, isFollowed: Bool) -> Progress {
        guard connection.isWritable else { return .blocked }
        guard connection.budget > 0 else { return .outOfBudget }
        let sent =
            switch segment {
            case .bytes(let content, let range):
                content.withUnsafeBytes { write(connection, $0.slice(range), isFollowed: isFollowed) }
            case .file(let file, let range): transfer(connection, file, range)
            }
        if sent < 0 { return .failed }
        if sent == segment.count { return .done }
        segment = segment.dropping(sent)
        return connection.isWritable ? .outOfBudget : .blocked
    }

    /// Sends bytes from memory. Returns how many were taken, -1 where the connection is gone.
    private func write(_ connection: Connection, _ bytes: UnsafeRawBufferPointer, isFollowed: Bool) -> Int {
        var done = 0
        while done < bytes.count {
            let sent = clinux_send(
                connection.token.descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, isFollowed ? 1 : 0)
            if sent < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return -1 }
                connection.isWritable = false
                break
            }
            done += sent
        }
        count(connection, done)
        return done
    }

    /// Sends two pieces from memory in one call. Returns how many bytes were taken, -1 where the connection is gone.
    private func write(
        _ connection: Connection, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, isFollowed: Bool
    ) -> Int {
        while true {
            let sent = clinux_send_both(
                connection.token.descriptor, first.baseAddress, first.count, second.baseAddress, second.count,
                isFollowed ? 1 : 0)
            if sent < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return -1 }
                connection.isWritable = false
                return 0
            }
            count(connection, sent)
            return sent
        }
    }

    /// Sends a part of a file from the page cache, but not more than a turn's worth. Returns how much was taken, -1 where
    /// the connection or the file is gone.
    private func transfer(_ connection: Connection, _ file: SharedDescriptor, _ range: Range<Int>) -> Int {
        var offset = Int64(range.lowerBound)
        let end = Int64(range.lowerBound + min(range.count, Self.turnBudget))
        while offset < end {
            let sent = clinux_sendfile(connection.token.descriptor, file.number, &offset, Int(end - offset))
            if sent > 0 { continue }
            if sent < 0, errno == EINTR { continue }
            guard sent < 0, errno == EAGAIN else { return -1 }
            connection.isWritable = false
            break
        }
        let done = Int(offset) - range.lowerBound
        count(connection, done)
        return done
    }

    private func count(_ connection: Connection, _ sent: Int) {
        connection.exchange.sentBytes += sent
        connection.sentBytes += sent
        connection.budget -= sent
    }

    /// Makes the connection ready for what comes after an answer.
    func finish(_ connection: Connection) {
        connection.exchange.started = 0
        if connection.exchange.closes {
            end(connection)
        } else if connection.body != nil {
            connection.phase = .discarding
            connection.discarded = 0
            connection.deadline = clock.now + settings.headTimeout
        } else {
            connection.phase = .reading
            becomeIdle(connection)
        }
    }

    func becomeIdle(_ connection: Connection) {
        connection.isWithinHead = false
        connection.idleSince = clock.now
        connection.deadline = clock.now + settings.idleTimeout
    }

    /// Closes a connection in order. Where the client has sent more than was read, closing at once would make the kernel
    /// send a reset, which may destroy the answer on its way (RFC 9112 section 9.6).
    private func end(_ connection: Connection) {
        if connection.body != nil || connection.hasPipelined || connection.isReadable || !connection.unread.isEmpty {
            beginLingering(connection)
        } else {
            close(connection)
        }
    }

    func beginLingering(_ connection: Connection) {
        _ = clinux_shutdown_send(connection.token.descriptor)
        connection.phase = .lingering
        connection.body = nil
        connection.unread = []
        connection.deadline = clock.now + Self.lingerTime
    }
}

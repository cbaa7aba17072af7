internal import CLinux
internal import Glibc
internal import Synchronization

/// From bytes to requests. Every step returns whether the connection can go on in its turn.
extension EventLoop {
    /// What a read brought.
    enum Arrival {
        case bytes(Int)
        case nothing
        /// The client has closed its sending half, or the connection is gone.
        case end
    }

    /// Reads into the shared buffer after its first `count` bytes.
    private func receive(_ connection: Connection, after count: Int) -> Arrival {
        receive(connection, into: input.room(after: count))
    }

    /// Reads what the kernel has of a connection, as far as there is room.
    func receive(_ connection: Connection, into room: UnsafeMutableRawBufferPointer) -> Arrival {
        guard connection.isReadable, room.count > 0 else { return .nothing }
        while true {
            let read = clinux_recv(connection.token.descriptor, room.baseAddress, room.count)
            if read > 0 {
                // Fewer bytes than there was room for: the kernel has no more, and will report when it has (epoll(7)).
                if read < room.count, !connection.peerHasClosed { connection.isReadable = false }
                return .bytes(read)
            }
            if read == 0 { return .end }
            switch errno {
            case EINTR: continue
            case EAGAIN:
                connection.isReadable = false
                return .nothing
            default: return .end
            }
        }
    }

    /// Reads and serves requests until input, budget or the connection's readiness for another request is used up.
    func readHeads(_ connection: Connection) -> Bool {
        var count = input.load(connection)
        // What follows a request that has been answered is looked at before more is read.
        if count == 0 || connection.isWithinHead {
            switch receive(connection, after: count) {
            case .bytes(let read):
                let known = count
                count += read
                // Without the end of a line there is nothing new to see in a head that was looked at before.
                if known > 0, count < settings.parser.limits.target, !input.bytes(known..<count).contains(10) {
                    connection.unread = Array(input.bytes(0..<count))
                    return true
                }
            case .nothing:
                connection.unread = Array(input.bytes(0..<count))
                return false
            case .end:
                close(connection)
                return false
            }
        }
        return takeRequests(connection, from: input.bytes(0..<count))
    }

    /// Serves the requests in `bytes`, and keeps what is left of them for the connection's next turn.
    func takeRequests(_ connection: Connection, from bytes: UnsafeRawBufferPointer) -> Bool {
        let position = serveRequests(connection, in: bytes)
        guard connection.phase != .closed else { return false }
        connection.unread = position < bytes.count ? Array(bytes[position...]) : []
        if connection.phase == .reading, !connection.unread.isEmpty, !connection.isWithinHead, connection.budget > 0 {
            connection.isWithinHead = true
            connection.deadline = clock.now + settings.headTimeout
        }
        return true
    }

    /// Serves the requests at the start of `bytes`, one after the other, and returns where it stopped.
    private func serveRequests(_ connection: Connection, in bytes: UnsafeRawBufferPointer) -> Int {
        var head = RequestHead()
        swap(&head, &spareHead)
        defer { swap(&head, &spareHead) }
        var position = 0
        while position < bytes.count, connection.phase == .reading, connection.budget > 0 {
            let rest = bytes.slice(position..<bytes.count)
            do throws(HTTPProtocolError) {
                guard try settings.parser.parse(rest, into: &head) else { break }
            } catch {
                connection.hasPipelined = true
                refuse(connection, error, head)
                return bytes.count
            }
            position += head.length
            connection.hasPipelined = position < bytes.count
            connection.isWithinHead = false
            connection.budget -= Self.requestCost
            respond(connection, head)
        }
        return position
    }

    /// Puts what there is of a body into the shared buffer: what is left of an earlier read, or else what has arrived. Nil where
    /// that is nothing, or the end.
    private func loadBody(_ connection: Connection) -> Int? {
        var count = input.load(connection)
        if count == 0 {
            switch receive(connection, after: 0) {
            case .bytes(let read): count = read
            case .nothing: return nil
            case .end:
                close(connection)
                return nil
            }
        }
        connection.budget -= count
        return count
    }

    /// Gives the body at hand to its sink, as far as it has arrived.
    func receiveBody(_ connection: Connection) -> Bool {
        guard let count = loadBody(connection) else { return false }
        let position = feed(connection, input.bytes(0..<count))
        if connection.phase != .closed, position < count {
            connection.unread = Array(input.bytes(position..<count))
        }
        return connection.phase != .closed
    }

    /// Passes `bytes` through the body's decoder to its sink, and returns where the body or its reception ended.
    private func feed(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) -> Int {
        var position = 0
        while connection.phase == .receiving {
            do {
                guard let step = try nextStep(connection, bytes, at: &position) else { break }
                switch step {
                case .data(let range): try take(connection, bytes.slice(range))
                case .needsMore: return position
                case .end:
                    connection.hasPipelined = position < bytes.count
                    finishReception(connection)
                }
            } catch {
                connection.hasPipelined = true
                abandonReception(connection)
                switch error {
                case let error as HTTPProtocolError: refuseKept(connection, error)
                case let refusal as HTTPBodyRefusal:
                    connection.exchange.closes = true
                    withKeptHead(connection) { answer(connection, refusal.response, $0) }
                default: refuseKept(connection, .handlerFailed)
                }
                return bytes.count
            }
        }
        return position
    }

    private func nextStep(
        _ connection: Connection, _ bytes: UnsafeRawBufferPointer, at position: inout Int
    ) throws(HTTPProtocolError) -> BodyDecoder.Step? {
        guard var body = connection.body else { return nil }
        let step = try body.next(bytes, at: &position)
        connection.body = body
        return step
    }

    private func take(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) throws {
        guard var reception = connection.reception else { return }
        reception.count += bytes.count
        connection.reception = reception
        guard reception.count <= reception.limit else { throw HTTPProtocolError.contentTooLarge }
        try reception.sink.write(bytes)
    }

    /// Reads and drops the rest of a body that nobody wanted.
    func discardBody(_ connection: Connection) -> Bool {
        guard let count = loadBody(connection) else { return false }
        let bytes = input.bytes(0..<count)
        var position = 0
        do throws(HTTPProtocolError) {
            while let step = try nextStep(connection, bytes, at: &position) {
                if case .data(let range) = step { connection.discarded += range.count }
                if case .end = step {
                    connection.body = nil
                    connection.phase = .reading
                    connection.unread = position < count ? Array(bytes[position...]) : []
                    becomeIdle(connection)
                    return true
                }
                if connection.discarded > settings.maxDiscarded { break }
                if case .needsMore = step { return true }
            }
        } catch {
            // A broken body has no end that could be found: what follows it cannot be a request.
        }
        beginLingering(connection)
        return true
    }

    /// Reads and drops what still comes after the last answer.
    func linger(_ connection: Connection) -> Bool {
        connection.unread = []
        switch receive(connection, after: 0) {
        case .bytes(let read):
            connection.budget -= read
            return true
        case .nothing: return false
        case .end:
            close(connection)
            return false
        }
    }
}

/// Bodies whose end is not known yet.
extension EventLoop {
    /// Sends the head in `output` and starts the task that makes the body.
    func beginStream(
        _ connection: Connection, _ produce: @escaping @Sendable (HTTPBodyWriter) async throws -> Void,
        _ headers: HTTPHeaders, _ head: RequestHead
    ) {
        if head.method == .head || HTTPStatus.isBodiless(connection.exchange.status) {
            send(connection, nil, headers, head)
            return
        }
        connection.draft = draft(connection, headers, head)
        connection.stream = StreamState(isChunked: head.minorVersion > 0)
        connection.outgoing.append(Segment(Array(output.bytes)))
        connection.phase = .sending
        connection.task = Task { [mailbox, token = connection.token] in
            do {
                try await produce(HTTPBodyWriter(mailbox: mailbox, token: token))
                mailbox.post(.streamEnded(token, isWhole: true))
            } catch {
                mailbox.post(.streamEnded(token, isWhole: false))
            }
        }
    }

    /// Sends the next piece of a body. Its writer waits until the kernel has taken it.
    func sendChunk(_ token: ConnectionToken, _ bytes: [UInt8], _ continuation: CheckedContinuation<Bool, Never>) {
        guard let connection = connections.find(token), let stream = connection.stream, stream.continuation == nil else {
            continuation.resume(returning: false)
            return
        }
        stream.continuation = continuation
        if stream.isChunked {
            connection.outgoing.append(Segment(Array("\(String(bytes.count, radix: 16))\r\n".utf8)))
            connection.outgoing.append(Segment(bytes))
            connection.outgoing.append(Segment([13, 10]))
        } else {
            connection.outgoing.append(Segment(bytes))
        }
        push(connection)
    }

    /// The task that made the body has ended.
    func endStream(_ token: ConnectionToken, isWhole: Bool) {
        guard let connection = connections.find(token), let stream = connection.stream else { return }
        connection.task = nil
        guard isWhole else {
            // Without its last chunk the body is seen to be broken off; so it is with a reset where there are no chunks.
            close(connection)
            return
        }
        stream.hasEnded = true
        if stream.isChunked { connection.outgoing.append(Segment(Array("0\r\n\r\n".utf8))) }
        push(connection)
    }

    private func push(_ connection: Connection) {
        if connection.phase == .streaming {
            connection.phase = .sending
            watchRate(connection, moved: acknowledgedBytes(connection))
        }
        serve(connection)
    }

    /// All pieces so far are sent. Returns whether the connection can go on in its turn.
    func continueStream(_ connection: Connection) -> Bool {
        guard let stream = connection.stream else { return true }
        stream.continuation?.resume(returning: true)
        stream.continuation = nil
        connection.deadline = .max
        guard stream.hasEnded else {
            connection.phase = .streaming
            if connection.peerHasClosed { beginProbing(connection) }
            return false
        }
        connection.stream = nil
        record(connection, isComplete: true)
        finish(connection)
        return true
    }
}

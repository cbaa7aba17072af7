/// Passes request bodies to their sinks, and discards bodies without a sink. Used by one loop thread.
final class BodyReceiver {
    /// The result of a step.
    enum Outcome {
        /// Bytes were consumed; more may have arrived.
        case progress
        /// No bytes have arrived.
        case nothing
        /// The client has closed its sending half, or the connection is broken.
        case end
        case complete
        /// The body is malformed or too long, or its sink refused it.
        case failed(any Error)
    }

    /// The result of starting a reception.
    enum Start {
        case receiving
        case withoutBody
        /// The declared length exceeds the limit.
        case tooLarge
        case broken
    }

    private let maxBody: Int
    private let maxDiscarded: Int
    private let bodyTimeout: UInt64
    private let clock: LoopClock
    private let timeouts: ConnectionTimeouts
    private let input: InputBuffer

    init(settings: LoopSettings, clock: LoopClock, timeouts: ConnectionTimeouts, input: InputBuffer) {
        maxBody = settings.configuration.maxBodyBytes
        maxDiscarded = settings.configuration.maxDiscardedBytes
        bodyTimeout = settings.configuration.bodyTimeout.nanoseconds
        self.clock = clock
        self.timeouts = timeouts
        self.input = input
    }

    // MARK: Receiving

    func start(_ connection: Connection, _ sink: any HTTPBodySink, _ head: RequestHead) -> Start {
        guard let body = connection.body else { return .withoutBody }
        let limit = min(sink.limit, maxBody)
        if let length = body.knownRemainder, length > limit {
            sink.abort()
            return .tooLarge
        }
        connection.keepHead(head)
        connection.reception = Reception(sink: sink, limit: limit, deadline: clock.now + bodyTimeout)
        connection.phase = .receiving
        timeouts.watchReceiving(connection)
        guard connection.exchange.awaitsContinue else { return .receiving }
        connection.exchange.awaitsContinue = false
        return connection.sendContinue() ? .receiving : .broken
    }

    /// Passes the bytes that have arrived to the body's sink.
    func receive(_ connection: Connection) -> Outcome {
        let count: Int
        switch load(connection) {
        case .bytes(let loaded): count = loaded
        case .nothing: return .nothing
        case .end: return .end
        }
        let bytes = input.bytes(0..<count)
        var position = 0
        /// The number of data bytes at the start of the buffer. The sink gets all data of a read in one call, because a client
        /// may send single-byte chunks.
        var gathered = 0
        do {
            while let step = try connection.nextBodyStep(bytes, at: &position) {
                switch step {
                case .data(let range):
                    input.move(range, to: gathered)
                    gathered += range.count
                case .needsMore:
                    try pass(input.bytes(0..<gathered), connection)
                    return .progress
                case .end:
                    try pass(input.bytes(0..<gathered), connection)
                    connection.hasPipelined = position < count
                    connection.unread = position < count ? Array(bytes[position...]) : []
                    return .complete
                }
            }
            return .progress
        } catch {
            // The rest of the input cannot be trusted to be a request.
            connection.hasUnusableInput = true
            abort(connection)
            return .failed(error)
        }
    }

    func finish(_ connection: Connection) -> (any HTTPBodySink)? {
        guard let sink = connection.reception?.sink else { return nil }
        connection.reception = nil
        connection.body = nil
        connection.deadline = .max
        connection.phase = .reading
        return sink
    }

    func abort(_ connection: Connection) {
        connection.reception?.sink.abort()
        connection.reception = nil
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, _ connection: Connection) throws {
        guard !bytes.isEmpty, var reception = connection.reception else { return }
        reception.count += bytes.count
        connection.reception = reception
        guard reception.count <= reception.limit else { throw HTTPProtocolError.contentTooLarge }
        try reception.sink.write(bytes)
    }

    // MARK: Discarding

    /// Whether the rest of a body without a sink may be read, so that the connection can serve another request.
    func canDiscardRest(_ connection: Connection) -> Bool {
        // A client that waits for 100 may or may not send its body, so the start of the next request is unknown.
        if connection.exchange.awaitsContinue { return false }
        return connection.body?.knownRemainder ?? 0 <= maxDiscarded
    }

    /// Starts discarding the rest of a body without a sink.
    func startDiscarding(_ connection: Connection) {
        connection.phase = .discarding
        connection.discarded = 0
        timeouts.awaitDiscardedBody(connection)
    }

    /// Reads and discards the body bytes that have arrived.
    func discard(_ connection: Connection) -> Outcome {
        let count: Int
        switch load(connection) {
        case .bytes(let loaded): count = loaded
        case .nothing: return .nothing
        case .end: return .end
        }
        let bytes = input.bytes(0..<count)
        var position = 0
        do throws(HTTPProtocolError) {
            while let step = try connection.nextBodyStep(bytes, at: &position) {
                if case .data(let range) = step { connection.discarded += range.count }
                if case .end = step {
                    connection.body = nil
                    connection.phase = .reading
                    connection.unread = position < count ? Array(bytes[position...]) : []
                    return .complete
                }
                if connection.discarded > maxDiscarded { return .failed(HTTPProtocolError.contentTooLarge) }
                if case .needsMore = step { return .progress }
            }
            return .progress
        } catch {
            // The end of a malformed body cannot be found, so the bytes that follow cannot be a request.
            return .failed(error)
        }
    }

    /// Loads body bytes into the shared buffer: the rest of an earlier read, or else newly arrived bytes.
    private func load(_ connection: Connection) -> Arrival {
        var count = input.load(connection)
        if count == 0 {
            switch connection.receive(into: input.freeSpace(after: 0)) {
            case .bytes(let read): count = read
            case .nothing: return .nothing
            case .end: return .end
            }
        }
        connection.budget -= count
        return .bytes(count)
    }
}

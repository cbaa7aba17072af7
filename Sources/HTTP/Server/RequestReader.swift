/// Reads request heads. Used by one loop thread.
final class RequestReader {
    /// The result of an attempt to read.
    enum Outcome {
        /// The start of a request, valid until the next read.
        case bytes(UnsafeRawBufferPointer)
        /// The head is known to be incomplete, and more input may have arrived.
        case incomplete
        case nothing
        /// The client has closed its sending half, or the connection is broken.
        case end
    }

    /// The share of the turn's budget that each request consumes, regardless of its length.
    private static let requestCost = 32 * 1024

    private let parser: RequestHeadParser
    private let timeouts: ConnectionTimeouts
    private let input: InputBuffer
    /// Starts of requests that were read but not served yet.
    private let arrivals: Arrivals
    /// A head whose storage the next request reuses.
    private var spareHead = RequestHead()

    init(parser: RequestHeadParser, timeouts: ConnectionTimeouts, input: InputBuffer) {
        self.parser = parser
        self.timeouts = timeouts
        self.input = input
        arrivals = Arrivals(capacity: input.capacity)
    }

    // MARK: Reading

    var hasNoArrivals: Bool { arrivals.isEmpty }

    /// Whether ``drainArrivals(_:)`` must precede the next ``readAhead(_:)``.
    var isFull: Bool { arrivals.isFull }

    /// Reads the start of a connection's next request, to be served together with those of other connections. Returns false if
    /// the connection has ended.
    func readAhead(_ connection: Connection) -> Bool {
        switch connection.receive(into: arrivals.freeSpace) {
        case .bytes(let count): arrivals.append(connection, count)
        case .nothing: break
        case .end: return false
        }
        return true
    }

    /// Calls `serve` with each connection that was read ahead and its bytes, in order of arrival.
    func drainArrivals(_ serve: (Connection, UnsafeRawBufferPointer) -> Void) {
        arrivals.drain(serve)
    }

    /// Reads a connection's next request: the rest of an earlier read, followed by newly arrived bytes.
    func read(_ connection: Connection) -> Outcome {
        // Bytes after an answered request are parsed before more are read.
        let isIncomplete = connection.isWithinHead || !connection.hasBegunRequest
        var count = input.load(connection)
        if isIncomplete {
            switch connection.receive(into: input.freeSpace(after: count)) {
            case .bytes(let read):
                let known = count
                count += read
                // Parsing an incomplete head again is worthwhile only after another line has ended.
                if connection.isWithinHead, known > 0, count < parser.limits.target, !input.bytes(known..<count).contains(10) {
                    connection.unread = Array(input.bytes(0..<count))
                    return .incomplete
                }
            case .nothing:
                connection.unread = Array(input.bytes(0..<count))
                return .nothing
            case .end: return .end
            }
        }
        return .bytes(input.bytes(0..<count))
    }

    // MARK: Parsing

    /// Parses the requests at the start of `bytes` while the connection can serve them, and keeps the rest for its next turn.
    ///
    /// - Parameters:
    ///   - serve: Receives each head, which is valid only during the call.
    ///   - refuse: Receives an error, and the head as far as it could be parsed. The bytes that follow are discarded.
    @inline(__always)
    func parse(
        _ bytes: UnsafeRawBufferPointer, of connection: Connection, serve: (RequestHead) -> Void,
        refuse: (HTTPProtocolError, RequestHead) -> Void
    ) {
        var head = RequestHead()
        swap(&head, &spareHead)
        defer { swap(&head, &spareHead) }
        var position = 0
        while position < bytes.count, connection.phase == .reading, connection.budget > 0 {
            let rest = bytes.slice(position..<bytes.count)
            do throws(HTTPProtocolError) {
                guard try parser.parse(rest, into: &head) else { break }
            } catch {
                connection.hasUnusableInput = true
                position = bytes.count
                refuse(error, head)
                break
            }
            position += head.length
            connection.hasPipelined = position < bytes.count
            connection.isWithinHead = false
            connection.budget -= Self.requestCost
            serve(head)
        }
        guard connection.phase != .closed else { return }
        if connection.phase == .reading, position < bytes.count {
            position += skipEmptyLines(bytes.slice(position..<bytes.count), connection)
        }
        connection.unread = position < bytes.count ? Array(bytes[position...]) : []
        if connection.phase == .reading, connection.hasBegunRequest, !connection.isWithinHead, connection.budget > 0 {
            timeouts.awaitHead(connection)
        }
    }

    /// Skips empty lines, which do not start a request (RFC 9112 section 2.2), so a client that sends only these stays idle.
    ///
    /// - Returns: The number of bytes of complete lines in `rest`, without a final CR; 0 if `rest` contains other bytes.
    private func skipEmptyLines(_ rest: UnsafeRawBufferPointer, _ connection: Connection) -> Int {
        for index in 0..<rest.count where rest[index] != (index.isMultiple(of: 2) ? 13 : 10) { return 0 }
        let skipped = rest.count & ~1
        // Without a cost, a client could delay the others with endless empty lines.
        connection.budget -= skipped
        return skipped
    }
}

internal import HTTP
internal import SystemIO

/// Handles `/status/{id}` (docs/api.md, asking without waiting).
///
/// The id is the permission: it cannot be guessed, and only the client that asked knows it.
struct StatusController: Sendable {
    let registry: StatusRegistry
    /// The statuses of other nodes; nil for a node that works alone.
    let book: (any SharedStatusBook)?

    /// Answers GET and HEAD with the status, or with a stream of events; DELETE leaves the flight.
    ///
    /// - Throws: `not_found` for an unknown id, or `overloaded` for too many streams.
    func answer(_ method: HTTPMethod, _ id: UInt128, _ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        let wantsEvents = AcceptField(request).prefersEvents
        // A browser that reconnects after the last event stops when it gets 204.
        let isOver =
            wantsEvents && method != .delete && request.headerBytes("Last-Event-ID")?.equals(EventStream.lastID) == true
        guard let status = registry.find(id) else {
            guard let book else { throw .noStatus }
            let client = request.isFromUnlistedProxy ? nil : request.clientAddress.map(ClientNetwork.init)
            return .later { await sharedAnswer(method, id, book, client, wantsEvents: wantsEvents, isOver: isOver) }
        }
        if method == .delete {
            registry.remove(status)
            guard let book else { return .now(Self.noContent) }
            // The other nodes would keep the status as long as this one would have.
            return .later {
                try? await book.remove(Hex.encode(id))
                return Self.noContent
            }
        }
        guard wantsEvents else { return .now(Self.document(StatusDocument(status).encoded)) }
        if isOver { return .now(Self.noContent) }
        guard let permit = status.openStream() else { throw .tooManyStreams }
        let stream = EventStream(request: status, timings: registry.timings)
        return .now(
            Self.events { writer in
                defer { withExtendedLifetime(permit) {} }
                try await stream.send(to: writer)
            })
    }

    /// Answers a request for a status that another node may hold.
    private func sharedAnswer(
        _ method: HTTPMethod, _ id: UInt128, _ book: any SharedStatusBook, _ client: ClientNetwork?, wantsEvents: Bool,
        isOver: Bool
    ) async -> HTTPResponse {
        let key = Hex.encode(id)
        let found: [UInt8]?
        do {
            if method == .delete {
                return try await book.cancel(key) ? Self.noContent : ProblemDocument.response(.noStatus)
            }
            found = try await book.read(key)
        } catch {
            // The status may exist, and a client that reads 404 gives it up.
            return ProblemDocument.response(.noCluster("\(error)"))
        }
        guard let document = found else { return ProblemDocument.response(.noStatus) }
        guard wantsEvents else { return Self.document(document) }
        if isOver { return Self.noContent }
        guard let permit = registry.openSharedStream(of: id, for: client) else {
            return ProblemDocument.response(registry.isClosed ? .draining : .tooManyStreams)
        }
        let stream = SharedEventStream(id: key, book: book, registry: registry)
        return Self.events { writer in
            defer { withExtendedLifetime(permit) {} }
            try await stream.send(document, to: writer)
        }
    }

    private static let noContent = HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"])

    private static func document(_ document: [UInt8]) -> HTTPResponse {
        HTTPResponse(status: 200, headers: fields("application/json"), body: .bytes(document))
    }

    private static func events(_ send: @escaping @Sendable (HTTPBodyWriter) async throws -> Void) -> HTTPResponse {
        var headers = fields("text/event-stream")
        // nginx buffers a response unless this field forbids it.
        headers.append("X-Accel-Buffering", "no")
        return HTTPResponse(status: 200, headers: headers, body: .stream { try await send($0) })
    }

    private static func fields(_ contentType: String) -> HTTPHeaders {
        var headers = HTTPResponse.unstored(contentType)
        headers.append("Vary", "Accept")
        return headers
    }
}

/// The events of one status (HTML standard, section 9.2): its document whenever it has changed, and the final one at the end.
struct EventStream: Sendable {
    static let lastID: StaticString = "end"

    let request: AsyncRequest
    let timings: StatusRegistry.Timings

    /// Sends events until the end of the work. A slow client delays only its own stream: the next event is composed when the
    /// previous one has been sent, so none pile up.
    func send(to writer: HTTPBodyWriter) async throws {
        var last: StatusDocument?
        var sentAt = ContinuousClock.now
        while !Task.isCancelled {
            let document = StatusDocument(request)
            if document != last {
                try await writer.write(Self.event(document.encoded, isFinal: document.isFinal))
                (last, sentAt) = (document, .now)
            } else if sentAt.duration(to: .now) >= timings.heartbeat {
                try await writer.write(Self.comment)
                sentAt = .now
            }
            if document.isFinal { return }
            await request.awaitEnd(within: timings.interval)
        }
    }

    /// A document as an event. JSON is one line of data, and ends with a newline.
    static func event(_ document: [UInt8], isFinal: Bool) -> [UInt8] {
        Array("\(isFinal ? "id: \(lastID)\n" : "")data: ".utf8) + document + [UInt8(ascii: "\n")]
    }

    /// A comment, which keeps a connection open while there is no event.
    static let comment = Array(":\n\n".utf8)
}

extension Problem {
    fileprivate static let noStatus = Problem(
        404, "not_found", "There is no status with this id. A status is kept for ten minutes.")
    fileprivate static let tooManyStreams = Problem(
        503, "overloaded", "Too many event streams follow this status.", retryAfter: 1)
}

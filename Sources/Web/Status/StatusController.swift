internal import HTTP
internal import Renditions

/// Handles `/status/{id}` (docs/api.md, asking without waiting).
///
/// The id is the permission: it cannot be guessed, and only the client that asked knows it.
struct StatusController: Sendable {
    private let registry: StatusRegistry

    init(registry: StatusRegistry) {
        self.registry = registry
    }

    /// Answers GET and HEAD with the status, or with a stream of events; DELETE leaves the flight.
    ///
    /// - Throws: `not_found` for an unknown id, or `overloaded` for too many streams.
    func answer(_ method: HTTPMethod, _ id: UInt128, _ request: borrowing HTTPRequest) throws(Problem) -> HTTPReply {
        guard let status = registry.find(id) else {
            throw .notFound("There is no status with this id. A status is kept for ten minutes, by the node that gave it.")
        }
        if method == .delete {
            registry.remove(status)
            return .now(HTTPResponse(status: 204, headers: ["Cache-Control": "no-store"]))
        }
        guard AcceptField(request.headers("Accept")).namesEvents else { return .now(Self.document(status)) }
        // A browser that reconnects after the last event stops when it gets 204.
        if request.header("Last-Event-ID") == EventStream.lastID { return .now(HTTPResponse(status: 204)) }
        guard let permit = status.openStream() else {
            throw Problem(503, "overloaded", "Too many event streams follow this status.", retryAfter: 1)
        }
        let stream = EventStream(request: status, timings: registry.timings)
        return .now(
            HTTPResponse(
                status: 200,
                headers: [
                    "Content-Type": "text/event-stream", "Cache-Control": "no-store", "Vary": "Accept",
                    // nginx collects a response before it passes it on, unless it is told not to.
                    "X-Accel-Buffering": "no",
                ],
                body: .stream { writer in
                    defer { withExtendedLifetime(permit) {} }
                    try await stream.send(to: writer)
                }))
    }

    private static func document(_ request: AsyncRequest) -> HTTPResponse {
        HTTPResponse(
            status: 200, headers: ["Content-Type": "application/json", "Cache-Control": "no-store", "Vary": "Accept"],
            body: .bytes(JSONText.encode(StatusDocument(request))))
    }
}

/// The events of one status (HTML standard, section 9.2): its document whenever it has changed, and the final one at the end.
struct EventStream: Sendable {
    /// The id of the event after which none follows.
    static let lastID = "end"

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
                try await writer.write(Self.event(document))
                (last, sentAt) = (document, .now)
            } else if sentAt.duration(to: .now) >= timings.heartbeat {
                try await writer.write(Array(":\n\n".utf8))
                sentAt = .now
            }
            if document.isFinal { return }
            await request.awaitEnd(within: timings.interval)
        }
    }

    /// The document as an event. JSON without line breaks is one line of data.
    private static func event(_ document: StatusDocument) -> [UInt8] {
        let id = document.isFinal ? "id: \(lastID)\n" : ""
        return Array("\(id)data: ".utf8) + JSONText.encode(document) + [UInt8(ascii: "\n")]
    }
}

internal import CLinux
internal import SystemIO

/// Encodes responses and starts sending them. Used by one loop thread.
///
/// Most responses are *staged*: they are encoded into one buffer and sent together at the end of the turn's second step, so
/// that the kernel's sending code stays in the processor's instruction cache (see ``EventLoop``).
final class ResponseWriter {
    /// The state of a response after ``write(_:_:_:)``.
    enum Outcome {
        /// ``sendStaged(_:)`` sends it.
        case staged
        case sent(SendProgress)
        /// The head is in the connection's segments, and the closure produces the body.
        case streams(@Sendable (HTTPBodyWriter) async throws -> Void)
    }

    /// A complete response that is waiting for ``sendStaged(_:)``.
    private struct StagedResponse {
        let connection: Connection
        /// The range of the head and a short body in ``output``.
        let bytes: Range<Int>
        /// The rest of the body, in memory.
        let body: Segment?
        /// Nil without an access log.
        let entry: ExchangeRecorder.StagedEntry?
    }

    /// The maximum length of a body that is copied after its head, which costs less than passing two buffers to the kernel.
    private static let copyLimit = 4096
    /// The number of staged bytes above which they are sent, so that they stay in the processor's cache.
    private static let stagedLimit = 32 * 1024

    /// The fields that depend on the request but not on the status. A refusal omits a representation's other fields, such as
    /// `Cache-Control` and `Cache-Tag`, because it has its own.
    private static let fieldsOfEveryStatus: [HTTPFieldName] = [
        "Vary", "Cache-Status", "Server-Timing", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
        "Access-Control-Expose-Headers", "Timing-Allow-Origin",
    ]

    private let handler: any HTTPHandler
    private let clock: LoopClock
    private let recorder: ExchangeRecorder?
    private let output = OutputBuffer(capacity: 64 * 1024)
    private let staged = ReusedList<StagedResponse>(capacity: 64)
    private var boundaries = RequestIDGenerator()

    init(settings: LoopSettings, clock: LoopClock, recorder: ExchangeRecorder?) {
        handler = settings.handler
        self.clock = clock
        self.recorder = recorder
    }

    /// Whether the staged responses should be sent before more are staged.
    var isStageFull: Bool { output.keptCount > Self.stagedLimit }

    /// Encodes a response and sends or stages it. The connection's exchange determines whether the connection then ends.
    func write(_ connection: Connection, _ response: HTTPResponse, _ head: RequestHead) -> Outcome {
        output.restart()
        if case .resource(let resource) = response.body, response.status == 200, head.method == .get || head.method == .head {
            return write(connection, resource.dated(notAfter: clock.unixTime), response.headers, head)
        }
        beginHead(connection, response.status)
        switch response.body {
        case .resource(let resource):
            let resource = resource.dated(notAfter: clock.unixTime)
            output.append(resource.wholeFields)
            return send(connection, Segment(resource.content, 0..<resource.length), response.headers, head)
        case .empty:
            if !HTTPStatus.isBodiless(response.status) { output.append("Content-Length: 0\r\n") }
            return send(connection, nil, response.headers, head)
        case .bytes(let body):
            if !HTTPStatus.isBodiless(response.status) { appendLength(body.count) }
            return send(connection, Segment(body), response.headers, head)
        case .stream(let length, let produce):
            let framing = BodyStream.Framing(length: length, minorVersion: head.minorVersion)
            switch framing {
            case .counted(let length): appendLength(length)
            case .chunked: output.append("Transfer-Encoding: chunked\r\n")
            case .untilClose: connection.exchange.closes = true
            }
            if head.method == .head || HTTPStatus.isBodiless(response.status) {
                return send(connection, nil, response.headers, head)
            }
            endHead(connection, response.headers, head)
            connection.draft = recorder?.draft(connection, response.headers, head)
            connection.stream = BodyStream(framing)
            connection.outgoing.append(Segment(Array(output.bytes)))
            return .streams(produce)
        }
    }

    func response(to error: HTTPProtocolError) -> HTTPResponse {
        var response = handler.response(to: error)
        response.status = error.status
        return response
    }

    /// Sends the staged responses in the order of their encoding, and calls `settle` for each.
    func sendStaged(_ settle: (Connection, SendProgress) -> Void) {
        guard !staged.isEmpty else { return }
        staged.drain { response in
            let connection = response.connection
            guard connection.phase == .staged else { return }
            // Copying an optional calls a function even for nil, the common value.
            var body: Segment?
            if let rest = response.body { body = rest }
            let progress = connection.sendHead(output.kept(response.bytes), with: &body, isFollowed: false)
            if let body, progress == .blocked { connection.outgoing.append(body) }
            if let recorder, let entry = response.entry {
                switch progress {
                case .done: recorder.record(entry, connection, isComplete: true)
                case .failed: recorder.record(entry, connection, isComplete: false)
                case .blocked, .outOfBudget, .notLoaded: connection.draft = recorder.draft(entry)
                }
            }
            settle(connection, progress)
        }
        output.removeAll()
        recorder?.removeStaged()
    }

    // MARK: Encoding

    /// Writes the part of a representation selected by the request's fields.
    private func write(
        _ connection: Connection, _ resource: HTTPResource, _ headers: HTTPHeaders, _ head: RequestHead
    ) -> Outcome {
        let selection =
            head.isConditionalOrPartial
            ? Selection(head: head, validators: resource.validators, length: resource.length, now: clock.unixTime)
            : .whole
        switch selection {
        case .whole:
            connection.exchange.status = 200
            output.append(resource.wholeHead)
            return send(connection, Segment(resource.content, 0..<resource.length), headers, head)
        case .part(let range):
            connection.exchange.status = 206
            output.append(resource.partHead)
            output.append("Content-Range: bytes ")
            output.append(decimal: range.lowerBound)
            output.append("-")
            output.append(decimal: range.upperBound - 1)
            output.append("/")
            output.append(decimal: resource.length)
            output.append("\r\n")
            appendLength(range.count)
            return send(connection, Segment(resource.content, range), headers, head)
        case .parts(let ranges):
            let multipart = MultipartRanges(resource, ranges, boundary: Hex.encode(boundaries.next()))
            connection.exchange.status = 206
            output.append(resource.partsHead)
            output.append(multipart.contentType)
            appendLength(multipart.length)
            return send(connection, multipart.segments[0], more: multipart.segments.dropFirst(), headers, head)
        case .notModified:
            connection.exchange.status = 304
            output.append(resource.notModifiedHead)
            return send(connection, nil, headers, head)
        case .preconditionFailed:
            return write(connection, refusal(.preconditionFailed, insteadOf: headers), head)
        case .rangeNotSatisfiable:
            var response = refusal(.rangeNotSatisfiable, insteadOf: headers)
            response.headers.append("Content-Range", "bytes */\(resource.length)")
            return write(connection, response, head)
        }
    }

    /// Returns the response to a request that selects no part of a representation.
    ///
    /// - Parameter headers: The fields of the response with the representation.
    private func refusal(_ error: HTTPProtocolError, insteadOf headers: HTTPHeaders) -> HTTPResponse {
        var response = response(to: error)
        for name in Self.fieldsOfEveryStatus where response.headers[name] == nil {
            if let value = headers[name] { response.headers.append(name, value) }
        }
        return response
    }

    private func beginHead(_ connection: Connection, _ status: Int) {
        connection.exchange.status = status
        if status == 200 {
            output.append("HTTP/1.1 200 OK\r\n")
            return
        }
        var line: [UInt8] = []
        HTTPStatus.appendLine(status, to: &line)
        output.append(line)
    }

    private func appendLength(_ length: Int) {
        output.append("Content-Length: ")
        output.append(decimal: length)
        output.append("\r\n")
    }

    /// Appends the fields that vary between responses, and the empty line.
    private func endHead(_ connection: Connection, _ headers: HTTPHeaders, _ head: RequestHead) {
        output.append(headers)
        output.append(clock.dateLine)
        output.append("X-Request-Id: ")
        if connection.exchange.generatedID == 0, let given = head.first(.requestID) {
            output.append(given)
        } else {
            output.append(requestID: connection.exchange.generatedID)
        }
        if connection.exchange.closes {
            output.append("\r\nConnection: close\r\n\r\n")
        } else if head.minorVersion == 0 {
            output.append("\r\nConnection: keep-alive\r\n\r\n")
        } else {
            output.append("\r\n\r\n")
        }
        connection.exchange.headBytes = output.count
    }

    // MARK: Sending

    /// Ends the head in ``output``, and stages or sends it and the body, which is omitted for HEAD and bodiless statuses.
    private func send(
        _ connection: Connection, _ body: consuming Segment?, more: ArraySlice<Segment> = [], _ headers: HTTPHeaders,
        _ head: RequestHead
    ) -> Outcome {
        endHead(connection, headers, head)
        let hasBody = head.method != .head && !HTTPStatus.isBodiless(connection.exchange.status)
        if !hasBody || body?.count == 0 { body = nil }
        let more = hasBody ? more : []
        // A short body in memory is sent in one buffer with its head, a longer one in the same call.
        if case .bytes(let content, let range) = body, range.count <= Self.copyLimit {
            content.withUnsafeBytes { output.append($0.slice(range)) }
            body = nil
        }
        let isLast = connection.exchange.closes
        if !isLast, !connection.hasPipelined, more.isEmpty, body?.isInMemory ?? true, connection.isWritable {
            connection.phase = .staged
            let entry = recorder?.stage(connection, headers, head)
            staged.append(StagedResponse(connection: connection, bytes: output.keep(), body: body, entry: entry))
            return .staged
        }
        // The last bytes before a close are held back until then, so that they share a packet with the FIN.
        let isFollowed = body.map { !$0.isInMemory } ?? false || !more.isEmpty
        if isLast && isFollowed { clinux_cork(connection.token.descriptor) }
        var progress = connection.sendHead(output.bytes, with: &body, isFollowed: isFollowed || isLast)
        if progress == .done, var segment = body {
            progress = connection.transmit(&segment, isFollowed: !more.isEmpty)
            body = progress == .done ? nil : segment
        }
        if progress != .failed {
            if let body { connection.outgoing.append(body) }
            if !more.isEmpty { connection.outgoing.append(contentsOf: more) }
            if progress == .done, !more.isEmpty { progress = connection.sendOutgoing() }
        }
        switch progress {
        case .done: recorder?.record(connection, headers, head, isComplete: true)
        case .failed: recorder?.record(connection, headers, head, isComplete: false)
        case .blocked, .outOfBudget, .notLoaded: connection.draft = recorder?.draft(connection, headers, head)
        }
        return .sent(progress)
    }
}

internal import Synchronization

/// From a request to its reply.
extension EventLoop {
    /// Notes the start of an exchange.
    func begin(_ connection: Connection) {
        connection.exchange = Exchange(started: clock.now)
        connection.deadline = .max
        counters.requests.wrappingAdd(1, ordering: .relaxed)
    }

    /// Asks the handler about a request.
    func respond(_ connection: Connection, _ head: RequestHead) {
        begin(connection)
        connection.exchange.closes = !head.keepsAlive
        connection.exchange.awaitsContinue = head.expectsContinue
        connection.exchange.allowsInterim = head.minorVersion > 0
        connection.exchange.madeID = hasSaneID(head) ? 0 : requestIDs.next()
        connection.body = head.framing == .none ? nil : BodyDecoder(head.framing)
        let origin = settings.proxies.origin(peer: connection.peer, head: head)
        let reply = withUnsafePointer(to: head) {
            settings.handler.respond(to: HTTPRequest(head: $0, madeID: connection.exchange.madeID, origin: origin))
        }
        take(connection, reply, head)
    }

    private func hasSaneID(_ head: RequestHead) -> Bool {
        guard let given = head.first(.requestID) else { return false }
        return RequestID.isSane(given)
    }

    private func take(_ connection: Connection, _ reply: HTTPReply, _ head: RequestHead) {
        switch reply {
        case .now(let response): answer(connection, response, head)
        case .later(let work): park(connection, work, head)
        case .receive(let sink): beginReception(connection, sink, head)
        }
    }

    // MARK: - Later

    /// Lets the connection wait for `work` without a thread.
    private func park(
        _ connection: Connection, _ work: @escaping @Sendable () async -> HTTPResponse, _ head: RequestHead
    ) {
        keepHead(connection, head)
        connection.phase = .waiting
        connection.deadline = .max
        connection.task = Task { [mailbox, token = connection.token] in
            mailbox.post(.answer(token, await work()))
        }
        if connection.peerHasClosed { beginProbing(connection) }
    }

    /// Goes on with a connection whose answer is there, unless its client has left.
    func resume(_ token: ConnectionToken, with response: HTTPResponse) {
        guard let connection = connections.find(token), connection.phase == .waiting else { return }
        connection.task = nil
        connection.deadline = .max
        connection.budget = Self.turnBudget
        withKeptHead(connection) { answer(connection, response, $0) }
        serve(connection)
    }

    /// Keeps the head beyond its turn: its fields decide what the answer will be.
    private func keepHead(_ connection: Connection, _ head: RequestHead) {
        if connection.keptHead.isEmpty { connection.keptHead = Array(head.bytes.slice(0..<head.length)) }
    }

    /// Calls `body` with the head that was kept, parsed again.
    func withKeptHead(_ connection: Connection, _ body: (RequestHead) -> Void) {
        let kept = connection.keptHead
        connection.keptHead = []
        kept.withUnsafeBytes { bytes in
            var head = RequestHead()
            // It was whole and right before, so this cannot fail; if it did, nothing could be answered.
            guard let isComplete = try? settings.parser.parse(bytes, into: &head), isComplete else {
                close(connection)
                return
            }
            body(head)
        }
    }

    // MARK: - Receive

    private func beginReception(_ connection: Connection, _ sink: any HTTPBodySink, _ head: RequestHead) {
        let limit = min(sink.limit, settings.maxBody)
        guard let body = connection.body else {
            take(connection, reply(of: sink), head)
            return
        }
        if let length = body.knownRemainder, length > limit {
            sink.abort()
            refuse(connection, .contentTooLarge, head)
            return
        }
        keepHead(connection, head)
        connection.reception = Reception(sink: sink, limit: limit, deadline: clock.now + settings.bodyTimeout)
        connection.phase = .receiving
        watchRate(connection, moved: 0)
        if connection.exchange.awaitsContinue {
            connection.exchange.awaitsContinue = false
            sendContinue(connection)
        }
    }

    /// The body is whole: its sink decides the reply.
    func finishReception(_ connection: Connection) {
        guard let sink = connection.reception?.sink else { return }
        connection.reception = nil
        connection.body = nil
        connection.deadline = .max
        connection.phase = .reading
        let reply = reply(of: sink)
        withKeptHead(connection) { take(connection, reply, $0) }
    }

    /// The body will not be whole.
    func abandonReception(_ connection: Connection) {
        connection.reception?.sink.abort()
        connection.reception = nil
    }

    private func reply(of sink: any HTTPBodySink) -> HTTPReply {
        let reply = sink.finish()
        if case .receive = reply { return .now(errorResponse(.handlerFailed)) }
        return reply
    }

    // MARK: - Refuse

    /// The answer to a request the engine refuses.
    func errorResponse(_ error: HTTPProtocolError) -> HTTPResponse {
        var response = settings.errorResponse(error)
        response.status = error.status
        return response
    }

    /// Answers a request, as far as that could be parsed, with an error and ends the connection: what
    /// follows on it is not to be trusted to be a request.
    func refuse(_ connection: Connection, _ error: HTTPProtocolError, _ head: RequestHead) {
        if connection.exchange.started == 0 { begin(connection) }
        if connection.exchange.madeID == 0, !hasSaneID(head) { connection.exchange.madeID = requestIDs.next() }
        connection.exchange.closes = true
        answer(connection, errorResponse(error), head)
    }

    /// The same for a request whose head was kept.
    func refuseKept(_ connection: Connection, _ error: HTTPProtocolError) {
        withKeptHead(connection) { refuse(connection, error, $0) }
    }
}

internal import CLinux

/// The state machine that moves a loop's connections through their phases. Used by one loop thread; never blocks.
///
/// Collaborators do the work of a phase and report its result: ``RequestReader``, ``RequestDispatcher``, ``BodyReceiver``,
/// ``ResponseWriter``, ``LingeringClose`` and ``ConnectionTimeouts``. Only the driver decides which phase follows and when a
/// connection is closed.
///
/// A step that returns a Boolean indicates whether the connection may continue in the same turn.
final class ConnectionDriver {
    private let mailbox: LoopMailbox
    private let connections: ConnectionTable
    private let connectionLimit: ConnectionLimit
    private let parser: RequestHeadParser
    private let clock: LoopClock
    private let timeouts: ConnectionTimeouts
    private let reader: RequestReader
    private let dispatcher: RequestDispatcher
    private let bodies: BodyReceiver
    private let writer: ResponseWriter
    private let lingering: LingeringClose
    private let loader: FileLoader
    private let recorder: ExchangeRecorder?
    /// Connections whose turn ended before their work did.
    private var queue: [Connection] = []
    private var isDraining = false
    /// The number of connections closed so far.
    private(set) var closedCount = 0

    init(
        settings: LoopSettings, mailbox: LoopMailbox, connections: ConnectionTable, clock: LoopClock, log: AccessLog?
    ) {
        self.mailbox = mailbox
        self.connections = connections
        self.clock = clock
        connectionLimit = settings.connectionLimit
        loader = settings.loader
        parser = settings.parser
        // Larger than the largest head, so that a head over the limit is recognized.
        let input = InputBuffer(capacity: max(64 * 1024, settings.parser.limits.head + 4096))
        timeouts = ConnectionTimeouts(settings: settings, clock: clock)
        reader = RequestReader(parser: settings.parser, timeouts: timeouts, input: input)
        dispatcher = RequestDispatcher(settings: settings, clock: clock)
        bodies = BodyReceiver(settings: settings, clock: clock, timeouts: timeouts, input: input)
        lingering = LingeringClose(timeouts: timeouts, input: input)
        recorder = log.map { ExchangeRecorder($0, settings: settings, clock: clock) }
        writer = ResponseWriter(settings: settings, clock: clock, recorder: recorder)
    }

    // MARK: - Interface to the loop

    /// Whether connections are queued for another turn.
    var hasQueued: Bool { !queue.isEmpty }

    /// Whether finished requests have not been passed to the access log yet.
    var hasUnlogged: Bool { !(recorder?.isEmpty ?? true) }

    /// Passes finished requests to the access log.
    func flushLog() { recorder?.flush() }

    /// From now on, closes each connection after its next response.
    func startDraining() {
        sendStaged()
        isDraining = true
    }

    /// Takes over a newly accepted connection and serves what it has already sent.
    func start(_ connection: Connection) {
        timeouts.awaitHead(connection)
        connection.idleSince = clock.now
        connections.insert(connection)
        connectionLimit.enter(connection)
        // Most clients send their request at once, so a connection that ends with its first response is often finished before
        // the poller would report it.
        connection.isReadable = true
        serve(connection)
    }

    /// Closes a connection regardless of its work in progress. The descriptor is closed with the last reference.
    func close(_ connection: Connection) {
        guard connection.phase != .closed else { return }
        if connection.exchange.started != 0 {
            // Many clients close the connection with the last byte of a declared length, before the producer has ended.
            let isComplete = connection.phase == .streaming && connection.stream?.isWhole ?? false
            recorder?.record(connection, isComplete: isComplete)
            connection.exchange.started = 0
        }
        connection.phase = .closed
        connection.task?.cancel()
        connection.task = nil
        if let stream = connection.stream {
            // The client detects an incomplete body by the missing last chunk or bytes, or by the reset.
            if stream.needsReset { _ = clinux_reset_on_close(connection.token.descriptor) }
            stream.resume(isSent: false)
            connection.stream = nil
        }
        bodies.abort(connection)
        connection.outgoing = []
        connections.remove(connection.token)
        connectionLimit.leave(connection)
        closedCount += 1
    }

    /// Handles a poller report on a connection: reads the start of its next request or continues its work.
    func report(_ readiness: Readiness, to connection: Connection) {
        if !readiness.isDisjoint(with: .broken) {
            guard connection.phase == .lingering else {
                close(connection)
                return
            }
            // Both sides have ended the connection. Closing it before its input is read would reset it.
            connection.isReadable = true
            connection.peerHasClosed = true
        }
        if readiness.contains(.readable) { connection.isReadable = true }
        if readiness.contains(.writable) { connection.isWritable = true }
        if readiness.contains(.peerClosed), !connection.peerHasClosed {
            connection.peerHasClosed = true
            connection.isReadable = true
            if connection.phase == .waiting || connection.phase == .streaming {
                closeIfClientHasLeft(connection)
                guard connection.phase != .closed else { return }
            }
        }
        if connection.phase == .reading, connection.unread.isEmpty {
            if reader.isFull { serveArrivals() }
            if !reader.readAhead(connection) { close(connection) }
        } else {
            serve(connection)
        }
    }

    /// Serves the requests read by ``report(_:to:)``. Most responses are staged.
    func serveArrivals() {
        guard !reader.hasNoArrivals else { return }
        reader.drainArrivals { connection, bytes in
            connection.budget = Connection.turnBudget
            guard serveRequests(connection, in: bytes) else { return }
            switch connection.phase {
            case .staged: break
            case .reading where !connection.isReadable && connection.unread.isEmpty: break
            default: advance(connection)
            }
            if writer.isStageFull { sendStaged() }
        }
    }

    func sendStaged() {
        writer.sendStaged { connection, progress in
            settle(connection, progress)
            if connection.isReadable || !connection.unread.isEmpty { enqueue(connection) }
        }
    }

    func serveQueued() {
        guard !queue.isEmpty else { return }
        let turn = queue
        queue = []
        for connection in turn {
            connection.isQueued = false
            serve(connection)
        }
    }

    /// Handles a connection whose deadline has passed.
    func expire(_ connection: Connection) {
        switch timeouts.judge(connection) {
        case .continue: break
        case .close where connection.isRefused && connection.phase == .reading: endRefused(connection)
        case .close: close(connection)
        case .reset:
            _ = clinux_reset_on_close(connection.token.descriptor)
            close(connection)
        case .timedOut where connection.phase == .receiving:
            bodies.abort(connection)
            withKeptHead(connection) { refuse(connection, .requestTimeout, $0) }
        case .timedOut: refuseUnread(connection, connection.isRefused ? .tooManyConnections : .requestTimeout)
        }
    }

    // MARK: - Turns

    private func enqueue(_ connection: Connection) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        queue.append(connection)
    }

    private func serve(_ connection: Connection) {
        connection.budget = Connection.turnBudget
        advance(connection)
    }

    /// Continues a connection until it would block or its budget is exhausted.
    private func advance(_ connection: Connection) {
        while true {
            let hasMore =
                switch connection.phase {
                case .reading: readRequests(connection)
                case .receiving: receiveBody(connection)
                case .discarding: discardBody(connection)
                case .sending: connection.isWritable && sendRest(connection)
                case .lingering: linger(connection)
                case .staged, .waiting, .streaming, .loading, .closed: false
                }
            guard hasMore else { return }
            if connection.budget <= 0 {
                enqueue(connection)
                return
            }
        }
    }

    // MARK: - From request to response

    /// Reads and serves requests until no input is left, the budget is exhausted, or a response is incomplete.
    private func readRequests(_ connection: Connection) -> Bool {
        switch reader.read(connection) {
        case .bytes(let bytes): return serveRequests(connection, in: bytes)
        case .incomplete: return true
        case .nothing: return false
        case .end:
            close(connection)
            return false
        }
    }

    /// Serves the requests at the start of `bytes` one after another.
    private func serveRequests(_ connection: Connection, in bytes: UnsafeRawBufferPointer) -> Bool {
        reader.parse(bytes, of: connection) { head in
            if connection.isRefused { return refuse(connection, .tooManyConnections, head) }
            apply(dispatcher.dispatch(connection, head), connection, head)
        } refuse: { error, head in
            refuse(connection, error, head)
        }
        return connection.phase != .closed
    }

    private func apply(_ reply: HTTPReply, _ connection: Connection, _ head: RequestHead) {
        switch reply {
        case .now(let response): respond(connection, response, head)
        case .later(let work): wait(connection, for: work, head)
        case .receive(let sink): startReception(connection, sink, head)
        }
    }

    /// Writes a response, after deciding whether the connection can serve another request.
    private func respond(_ connection: Connection, _ response: HTTPResponse, _ head: RequestHead) {
        if isDraining || connectionLimit.isContended { connection.exchange.closes = true }
        if connection.body != nil, !bodies.canDiscardRest(connection) { connection.exchange.closes = true }
        switch writer.write(connection, response, head) {
        case .staged: break
        case .sent(let progress): settle(connection, progress)
        case .streams(let produce): startStream(connection, produce)
        }
    }

    /// Runs `work` in a task. The connection waits for its response without a thread.
    private func wait(
        _ connection: Connection, for work: @escaping @Sendable () async -> HTTPResponse, _ head: RequestHead
    ) {
        connection.keepHead(head)
        connection.phase = .waiting
        connection.deadline = .max
        connection.task = Task { [mailbox, token = connection.token] in
            mailbox.post(.response(token, await work()))
        }
        if connection.peerHasClosed { closeIfClientHasLeft(connection) }
    }

    /// Closes a connection whose client has closed its sending half if the client is known to have left.
    private func closeIfClientHasLeft(_ connection: Connection) {
        if timeouts.hasLeft(connection) { close(connection) }
    }

    /// Sends the response that a connection is waiting for, unless the connection was closed.
    func resume(_ token: ConnectionToken, with response: HTTPResponse) {
        guard let connection = connections.find(token), connection.phase == .waiting else { return }
        connection.task = nil
        connection.deadline = .max
        connection.budget = Connection.turnBudget
        withKeptHead(connection) { respond(connection, response, $0) }
        serve(connection)
    }

    private func withKeptHead(_ connection: Connection, _ body: (RequestHead) -> Void) {
        // The head was complete and valid before. If it no longer were, no response could be written.
        if !connection.withKeptHead(parser, body) { close(connection) }
    }

    /// Responds with an error to a request, as far as it could be parsed, and ends the connection, because the bytes that
    /// follow cannot be trusted to be a request.
    private func refuse(_ connection: Connection, _ error: HTTPProtocolError, _ head: RequestHead) {
        dispatcher.startRefusal(connection, head)
        respond(connection, writer.response(to: error), head)
    }

    /// Responds to a refused connection that has sent no complete request so far.
    func endRefused(_ connection: Connection) {
        guard connection.phase == .reading else { return }
        refuseUnread(connection, .tooManyConnections)
    }

    /// Responds with an error to a request whose head is incomplete, as far as it has arrived.
    private func refuseUnread(_ connection: Connection, _ error: HTTPProtocolError) {
        let unread = connection.unread
        unread.withUnsafeBytes { bytes in
            var head = RequestHead()
            _ = try? parser.parse(bytes, into: &head)
            refuse(connection, error, head)
        }
    }

    // MARK: - Request bodies

    private func startReception(_ connection: Connection, _ sink: any HTTPBodySink, _ head: RequestHead) {
        switch bodies.start(connection, sink, head) {
        case .receiving: break
        case .withoutBody: apply(reply(of: sink), connection, head)
        case .tooLarge: refuse(connection, .contentTooLarge, head)
        case .broken: close(connection)
        }
    }

    private func receiveBody(_ connection: Connection) -> Bool {
        switch bodies.receive(connection) {
        case .progress: break
        case .nothing: return false
        case .end: close(connection)
        case .complete:
            if let sink = bodies.finish(connection) {
                let reply = reply(of: sink)
                withKeptHead(connection) { apply(reply, connection, $0) }
            }
        case .failed(let error as HTTPProtocolError): withKeptHead(connection) { refuse(connection, error, $0) }
        case .failed(let refusal as HTTPBodyRefusal):
            connection.exchange.closes = true
            withKeptHead(connection) { respond(connection, refusal.response, $0) }
        case .failed: withKeptHead(connection) { refuse(connection, .handlerFailed, $0) }
        }
        return connection.phase != .closed
    }

    private func reply(of sink: any HTTPBodySink) -> HTTPReply {
        let reply = sink.finish()
        if case .receive = reply { return .now(writer.response(to: .handlerFailed)) }
        return reply
    }

    private func discardBody(_ connection: Connection) -> Bool {
        switch bodies.discard(connection) {
        case .progress: return true
        case .nothing: return false
        case .end:
            close(connection)
            return false
        case .complete: timeouts.becomeIdle(connection)
        case .failed: lingering.start(connection)
        }
        return true
    }

    // MARK: - Sending and completion

    /// Continues after an attempt to send a whole response, which has already been recorded.
    private func settle(_ connection: Connection, _ progress: SendProgress) {
        switch progress {
        case .done: finish(connection)
        case .failed:
            connection.exchange.started = 0
            close(connection)
        case .blocked:
            connection.phase = .sending
            timeouts.watchSending(connection)
        case .outOfBudget: connection.phase = .sending
        case .notLoaded: load(connection)
        }
    }

    /// Continues sending the remaining segments.
    private func sendRest(_ connection: Connection) -> Bool {
        switch connection.sendOutgoing() {
        case .done:
            if let stream = connection.stream { return continueStream(connection, stream) }
            recorder?.record(connection, isComplete: true)
            finish(connection)
            return true
        case .blocked:
            if connection.deadline == .max { timeouts.watchSending(connection) }
            return false
        case .outOfBudget: return true
        case .notLoaded:
            load(connection)
            return false
        case .failed:
            close(connection)
            return false
        }
    }

    /// Makes a thread read the next piece of the file being sent.
    private func load(_ connection: Connection) {
        guard case .file(let file, let range)? = connection.outgoing.first else { return close(connection) }
        let piece = ServedFile.piece(of: range)
        connection.loadedEnd = piece.upperBound
        connection.phase = .loading
        connection.deadline = .max
        loader.load(file, piece) { [mailbox, token = connection.token] in mailbox.post(.loaded(token)) }
    }

    /// Continues sending a file whose next piece is now in the page cache.
    func continueSending(_ token: ConnectionToken) {
        guard let connection = connections.find(token), connection.phase == .loading else { return }
        connection.phase = .sending
        serve(connection)
    }

    /// Prepares the connection for its next phase after a response.
    private func finish(_ connection: Connection) {
        connection.exchange.started = 0
        if connection.exchange.closes {
            end(connection)
        } else if connection.body != nil {
            bodies.startDiscarding(connection)
        } else {
            connection.phase = .reading
            timeouts.becomeIdle(connection)
        }
    }

    /// Closes a connection after its last response, once the rest of its input has been read.
    private func end(_ connection: Connection) {
        if lingering.isNeeded(connection) { lingering.start(connection) } else { close(connection) }
    }

    /// Reads and discards input after the last response.
    private func linger(_ connection: Connection) -> Bool {
        switch lingering.discardInput(connection) {
        case .bytes: return true
        case .nothing: return false
        case .end:
            close(connection)
            return false
        }
    }

    // MARK: - Streamed bodies

    /// Starts producing a body whose head is in the connection's segments.
    private func startStream(
        _ connection: Connection, _ produce: @escaping @Sendable (HTTPBodyWriter) async throws -> Void
    ) {
        connection.phase = .sending
        // While the socket is known to be full, nothing is sent, so `sendRest(_:)` would not start this window.
        timeouts.watchSending(connection)
        connection.task = BodyStream.start(produce, for: connection.token, mailbox: mailbox)
    }

    /// Sends the next piece of a body. Its writer waits until the kernel has accepted the piece.
    func sendChunk(_ token: ConnectionToken, _ bytes: [UInt8], _ continuation: CheckedContinuation<Bool, Never>) {
        guard let connection = connections.find(token), let stream = connection.stream,
            stream.append(bytes, continuation, to: &connection.outgoing)
        else {
            continuation.resume(returning: false)
            return
        }
        sendStreamed(connection)
    }

    func endStream(_ token: ConnectionToken, isComplete: Bool) {
        guard let connection = connections.find(token), let stream = connection.stream else { return }
        connection.task = nil
        guard isComplete, stream.end(&connection.outgoing) else {
            close(connection)
            return
        }
        sendStreamed(connection)
    }

    private func sendStreamed(_ connection: Connection) {
        if connection.phase == .streaming {
            connection.phase = .sending
            timeouts.watchSending(connection)
        }
        serve(connection)
    }

    /// Continues after all pieces so far have been sent.
    private func continueStream(_ connection: Connection, _ stream: BodyStream) -> Bool {
        stream.resume(isSent: true)
        timeouts.endSending(connection)
        guard stream.hasEnded else {
            connection.phase = .streaming
            if connection.peerHasClosed { closeIfClientHasLeft(connection) }
            return false
        }
        connection.stream = nil
        recorder?.record(connection, isComplete: true)
        finish(connection)
        return true
    }
}

internal import CLinux
internal import Synchronization

/// Moves a loop's connections through their phases: it reads requests, asks the handler, passes bodies to their sinks, has
/// responses written, and enforces the deadlines. It belongs to one loop thread and never blocks.
///
/// The steps that return a Boolean return whether the connection can continue in its turn.
final class ConnectionDriver {
    /// The amount of the turn's budget that a request takes, regardless of what it moves.
    private static let requestCost = 32 * 1024
    /// How long incoming bytes are read after the last response, so that no reset destroys it.
    private static let lingerTime: UInt64 = 3_000_000_000

    private let settings: LoopSettings
    private let mailbox: LoopMailbox
    private let counters: LoopCounters
    private let connections: ConnectionTable
    private let clock: LoopClock
    private let probe: PeerProbe
    private let recorder: ExchangeRecorder?
    private let writer: ResponseWriter
    private let input: InputBuffer
    /// Starts of requests that were read and are not served yet.
    private let arrivals: Arrivals
    /// A head whose storage the next request uses.
    private var spareHead = RequestHead()
    private var requestIDs = RequestIDGenerator()
    /// Connections whose turn ended before their work did.
    private var queue: [Connection] = []
    private var isDraining = false
    /// Connections that were closed so far.
    private(set) var closedCount = 0

    init(
        settings: LoopSettings, mailbox: LoopMailbox, counters: LoopCounters, connections: ConnectionTable, clock: LoopClock,
        log: AccessLog?
    ) {
        self.settings = settings
        self.mailbox = mailbox
        self.counters = counters
        self.connections = connections
        self.clock = clock
        probe = PeerProbe(looksUpLocalPeers: settings.looksUpLocalPeers)
        let recorder = log.map { ExchangeRecorder($0, settings: settings, clock: clock) }
        self.recorder = recorder
        writer = ResponseWriter(settings: settings, clock: clock, recorder: recorder)
        // Larger than the largest head, so that a head over the limit is recognized.
        let capacity = max(64 * 1024, settings.parser.limits.head + 4096)
        input = InputBuffer(capacity: capacity)
        arrivals = Arrivals(capacity: capacity)
    }

    // MARK: - The loop's side

    /// Whether connections wait for another turn.
    var hasQueued: Bool { !queue.isEmpty }

    /// Whether finished requests wait to be handed to the access log.
    var hasUnlogged: Bool { !(recorder?.isEmpty ?? true) }

    /// Hands finished requests to the access log.
    func flushLog() { recorder?.flush() }

    /// Ends each connection with its next response from now on.
    func startDraining() {
        sendStaged()
        isDraining = true
    }

    /// Takes over a connection that was just accepted, and serves what it has sent already.
    func start(_ connection: Connection) {
        connection.deadline = clock.now + settings.headTimeout
        connection.idleSince = clock.now
        connections.insert(connection)
        settings.connectionLimit.enter()
        counters.accepted.wrappingAdd(1, ordering: .relaxed)
        // Most clients send their request at once: a connection that ends with its first response is often over before the
        // poller would report it.
        connection.isReadable = true
        serve(connection)
    }

    /// Closes a connection, whatever is in progress on it. The descriptor is closed with the last reference.
    func close(_ connection: Connection) {
        guard connection.phase != .closed else { return }
        if connection.exchange.started != 0 {
            recorder?.record(connection, isComplete: false)
            connection.exchange.started = 0
        }
        connection.phase = .closed
        connection.task?.cancel()
        connection.task = nil
        connection.stream?.continuation?.resume(returning: false)
        connection.stream = nil
        connection.reception?.sink.abort()
        connection.reception = nil
        connection.outgoing = []
        connections.remove(connection.token)
        settings.connectionLimit.leave()
        closedCount += 1
    }

    /// Notes what the poller reports of a connection, and reads the start of its next request or continues its work.
    func report(_ readiness: Readiness, to connection: Connection) {
        if !readiness.isDisjoint(with: .broken) {
            close(connection)
            return
        }
        if readiness.contains(.readable) { connection.isReadable = true }
        if readiness.contains(.writable) { connection.isWritable = true }
        if readiness.contains(.peerClosed), !connection.peerHasClosed {
            connection.peerHasClosed = true
            connection.isReadable = true
            if connection.phase == .waiting || connection.phase == .streaming {
                startProbing(connection)
                guard connection.phase != .closed else { return }
            }
        }
        if connection.phase == .reading, connection.unread.isEmpty {
            readAhead(connection)
        } else {
            serve(connection)
        }
    }

    /// Serves the requests that ``report(_:to:)`` has read. Most responses are staged.
    func serveArrivals() {
        guard !arrivals.isEmpty else { return }
        arrivals.drain { connection, bytes in
            connection.budget = Connection.turnBudget
            guard takeRequests(connection, from: bytes) else { return }
            switch connection.phase {
            case .staged: break
            case .reading where !connection.isReadable && connection.unread.isEmpty: break
            default: advance(connection)
            }
            if writer.isStageFull { sendStaged() }
        }
    }

    /// Sends the staged responses.
    func sendStaged() {
        writer.sendStaged { connection, progress in
            settle(connection, progress)
            if connection.isReadable || !connection.unread.isEmpty { enqueue(connection) }
        }
    }

    /// Gives the queued connections their next turn.
    func serveQueued() {
        guard !queue.isEmpty else { return }
        let turn = queue
        queue = []
        for connection in turn {
            connection.isQueued = false
            serve(connection)
        }
    }

    private func enqueue(_ connection: Connection) {
        guard !connection.isQueued else { return }
        connection.isQueued = true
        queue.append(connection)
    }

    /// Gives a connection its turn.
    private func serve(_ connection: Connection) {
        connection.budget = Connection.turnBudget
        advance(connection)
    }

    /// Continues a connection until it would have to wait or its budget is used up.
    private func advance(_ connection: Connection) {
        while true {
            let hasMore =
                switch connection.phase {
                case .reading: readHeads(connection)
                case .receiving: receiveBody(connection)
                case .discarding: discardBody(connection)
                case .sending: connection.isWritable && sendRest(connection)
                case .lingering: linger(connection)
                case .staged, .waiting, .streaming, .closed: false
                }
            guard hasMore else { return }
            if connection.budget <= 0 {
                enqueue(connection)
                return
            }
        }
    }

    // MARK: - Reading heads

    /// Reads the start of a connection's next request, to be served with those of the other connections.
    private func readAhead(_ connection: Connection) {
        if arrivals.isFull { serveArrivals() }
        switch connection.receive(into: arrivals.room) {
        case .bytes(let count): arrivals.append(connection, count)
        case .nothing: break
        case .end: close(connection)
        }
    }

    /// Reads and serves requests until no input is left, the budget is used up, or a response is not complete.
    private func readHeads(_ connection: Connection) -> Bool {
        var count = input.load(connection)
        // What follows an answered request is parsed before more is read.
        if count == 0 || connection.isWithinHead {
            switch connection.receive(into: input.room(after: count)) {
            case .bytes(let read):
                let known = count
                count += read
                // Parsing an incomplete head again is worthwhile only when another line has ended.
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

    /// Serves the requests in `bytes`, and keeps the rest for the connection's next turn.
    private func takeRequests(_ connection: Connection, from bytes: UnsafeRawBufferPointer) -> Bool {
        let position = serveRequests(connection, in: bytes)
        guard connection.phase != .closed else { return false }
        connection.unread = position < bytes.count ? Array(bytes[position...]) : []
        if connection.phase == .reading, !connection.unread.isEmpty, !connection.isWithinHead, connection.budget > 0 {
            connection.isWithinHead = true
            connection.deadline = clock.now + settings.headTimeout
        }
        return true
    }

    /// Serves the requests at the start of `bytes` one after the other, and returns the position where it stopped.
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
            handle(connection, head)
        }
        return position
    }

    // MARK: - From request to response

    /// Starts an exchange.
    private func startExchange(_ connection: Connection) {
        connection.exchange = Exchange(started: clock.now)
        connection.deadline = .max
        counters.requests.wrappingAdd(1, ordering: .relaxed)
    }

    /// Passes a request to the handler.
    private func handle(_ connection: Connection, _ head: RequestHead) {
        startExchange(connection)
        connection.exchange.closes = !head.keepsAlive
        connection.exchange.awaitsContinue = head.expectsContinue
        connection.exchange.allowsInterim = head.minorVersion > 0
        connection.exchange.generatedID = hasUsableID(head) ? 0 : requestIDs.next()
        connection.body = head.framing == .none ? nil : BodyDecoder(head.framing)
        let origin = settings.proxies.origin(peer: connection.peer, head: head)
        let reply = withUnsafePointer(to: head) {
            settings.handler.respond(
                to: HTTPRequest(head: $0, generatedID: connection.exchange.generatedID, origin: origin))
        }
        apply(reply, connection, head)
    }

    private func hasUsableID(_ head: RequestHead) -> Bool {
        guard let given = head.first(.requestID) else { return false }
        return RequestID.isUsable(given)
    }

    private func apply(_ reply: HTTPReply, _ connection: Connection, _ head: RequestHead) {
        switch reply {
        case .now(let response): respond(connection, response, head)
        case .later(let work): wait(connection, for: work, head)
        case .receive(let sink): startReception(connection, sink, head)
        }
    }

    /// Writes a response, and decides before that whether the connection can serve another request.
    private func respond(_ connection: Connection, _ response: HTTPResponse, _ head: RequestHead) {
        if isDraining || settings.connectionLimit.isContended { connection.exchange.closes = true }
        if let body = connection.body {
            // A client that waits for 100 may send its body or not, so the start of the next request is unknown.
            let isUnknown = connection.exchange.awaitsContinue
            if isUnknown || body.knownRemainder ?? 0 > settings.maxDiscarded { connection.exchange.closes = true }
        }
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
        if connection.peerHasClosed { startProbing(connection) }
    }

    /// Closes a connection whose client has closed its sending half, if the client is known to have left.
    private func startProbing(_ connection: Connection) {
        if probe.hasLeft(connection, now: clock.now, isFirst: true) { close(connection) }
    }

    /// Sends the response that a connection waits for, unless the connection was closed.
    func resume(_ token: ConnectionToken, with response: HTTPResponse) {
        guard let connection = connections.find(token), connection.phase == .waiting else { return }
        connection.task = nil
        connection.deadline = .max
        connection.budget = Connection.turnBudget
        withKeptHead(connection) { respond(connection, response, $0) }
        serve(connection)
    }

    private func withKeptHead(_ connection: Connection, _ body: (RequestHead) -> Void) {
        // The head was complete and valid before. If it were not, no response could be written.
        if !connection.withKeptHead(settings.parser, body) { close(connection) }
    }

    /// Responds with an error to a request, as far as it could be parsed, and ends the connection: the bytes that follow cannot
    /// be trusted to be a request.
    private func refuse(_ connection: Connection, _ error: HTTPProtocolError, _ head: RequestHead) {
        if connection.exchange.started == 0 { startExchange(connection) }
        if connection.exchange.generatedID == 0, !hasUsableID(head) { connection.exchange.generatedID = requestIDs.next() }
        connection.exchange.closes = true
        respond(connection, writer.response(to: error), head)
    }

    // MARK: - Request bodies

    private func startReception(_ connection: Connection, _ sink: any HTTPBodySink, _ head: RequestHead) {
        let limit = min(sink.limit, settings.maxBody)
        guard let body = connection.body else {
            apply(reply(of: sink), connection, head)
            return
        }
        if let length = body.knownRemainder, length > limit {
            sink.abort()
            refuse(connection, .contentTooLarge, head)
            return
        }
        connection.keepHead(head)
        connection.reception = Reception(sink: sink, limit: limit, deadline: clock.now + settings.bodyTimeout)
        connection.phase = .receiving
        watchRate(connection, moved: 0)
        if connection.exchange.awaitsContinue {
            connection.exchange.awaitsContinue = false
            if !connection.sendContinue() { close(connection) }
        }
    }

    /// Loads the bytes of a body into the shared buffer: the rest of an earlier read, or else what has arrived. Returns nil
    /// where that is nothing, or the end.
    private func loadBody(_ connection: Connection) -> Int? {
        var count = input.load(connection)
        if count == 0 {
            switch connection.receive(into: input.room(after: 0)) {
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

    /// Passes the bytes of a body that have arrived to its sink.
    private func receiveBody(_ connection: Connection) -> Bool {
        guard let count = loadBody(connection) else { return false }
        let position = feed(connection, input.bytes(0..<count))
        if connection.phase != .closed, position < count {
            connection.unread = Array(input.bytes(position..<count))
        }
        return connection.phase != .closed
    }

    /// Decodes `bytes` for the sink, and returns the position where the body or its reception ended.
    private func feed(_ connection: Connection, _ bytes: UnsafeRawBufferPointer) -> Int {
        var position = 0
        while connection.phase == .receiving {
            do {
                guard let step = try connection.nextBodyStep(bytes, at: &position) else { break }
                switch step {
                case .data(let range): try pass(bytes.slice(range), connection)
                case .needsMore: return position
                case .end:
                    connection.hasPipelined = position < bytes.count
                    finishReception(connection)
                }
            } catch {
                connection.hasPipelined = true
                abandonReception(connection)
                switch error {
                case let error as HTTPProtocolError: withKeptHead(connection) { refuse(connection, error, $0) }
                case let refusal as HTTPBodyRefusal:
                    connection.exchange.closes = true
                    withKeptHead(connection) { respond(connection, refusal.response, $0) }
                default: withKeptHead(connection) { refuse(connection, .handlerFailed, $0) }
                }
                return bytes.count
            }
        }
        return position
    }

    private func pass(_ bytes: UnsafeRawBufferPointer, _ connection: Connection) throws {
        guard var reception = connection.reception else { return }
        reception.count += bytes.count
        connection.reception = reception
        guard reception.count <= reception.limit else { throw HTTPProtocolError.contentTooLarge }
        try reception.sink.write(bytes)
    }

    /// Lets the sink of a complete body decide the reply.
    private func finishReception(_ connection: Connection) {
        guard let sink = connection.reception?.sink else { return }
        connection.reception = nil
        connection.body = nil
        connection.deadline = .max
        connection.phase = .reading
        let reply = reply(of: sink)
        withKeptHead(connection) { apply(reply, connection, $0) }
    }

    private func abandonReception(_ connection: Connection) {
        connection.reception?.sink.abort()
        connection.reception = nil
    }

    private func reply(of sink: any HTTPBodySink) -> HTTPReply {
        let reply = sink.finish()
        if case .receive = reply { return .now(writer.response(to: .handlerFailed)) }
        return reply
    }

    /// Reads and drops the rest of a body that no sink wanted.
    private func discardBody(_ connection: Connection) -> Bool {
        guard let count = loadBody(connection) else { return false }
        let bytes = input.bytes(0..<count)
        var position = 0
        do throws(HTTPProtocolError) {
            while let step = try connection.nextBodyStep(bytes, at: &position) {
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
            // The end of a malformed body cannot be found, so what follows cannot be a request.
        }
        startLingering(connection)
        return true
    }

    // MARK: - Sending and its end

    /// Continues after an attempt to send a whole response, which is recorded already.
    private func settle(_ connection: Connection, _ progress: SendProgress) {
        switch progress {
        case .done: finish(connection)
        case .failed:
            connection.exchange.started = 0
            close(connection)
        case .blocked:
            connection.phase = .sending
            watchRate(connection, moved: connection.acknowledgedBytes)
        case .outOfBudget: connection.phase = .sending
        }
    }

    /// Continues with the segments that are left to send.
    private func sendRest(_ connection: Connection) -> Bool {
        switch connection.sendOutgoing() {
        case .done:
            if connection.stream != nil { return continueStream(connection) }
            recorder?.record(connection, isComplete: true)
            finish(connection)
            return true
        case .blocked:
            if connection.deadline == .max { watchRate(connection, moved: connection.acknowledgedBytes) }
            return false
        case .outOfBudget: return true
        case .failed:
            close(connection)
            return false
        }
    }

    /// Prepares the connection for what follows a response.
    private func finish(_ connection: Connection) {
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

    private func becomeIdle(_ connection: Connection) {
        connection.isWithinHead = false
        connection.idleSince = clock.now
        connection.deadline = clock.now + settings.idleTimeout
    }

    /// Closes a connection after its last response. Where the client has sent more than was read, closing at once would make
    /// the kernel send a reset, which may destroy the response on its way (RFC 9112 section 9.6).
    private func end(_ connection: Connection) {
        if connection.body != nil || connection.hasPipelined || connection.isReadable || !connection.unread.isEmpty {
            startLingering(connection)
        } else {
            close(connection)
        }
    }

    private func startLingering(_ connection: Connection) {
        _ = clinux_shutdown_send(connection.token.descriptor)
        connection.phase = .lingering
        connection.body = nil
        connection.unread = []
        connection.deadline = clock.now + Self.lingerTime
    }

    /// Reads and drops what arrives after the last response.
    private func linger(_ connection: Connection) -> Bool {
        connection.unread = []
        switch connection.receive(into: input.room(after: 0)) {
        case .bytes(let read):
            connection.budget -= read
            return true
        case .nothing: return false
        case .end:
            close(connection)
            return false
        }
    }

    // MARK: - Streamed bodies

    /// Starts the task that produces a body, whose head is in the connection's segments.
    private func startStream(
        _ connection: Connection, _ produce: @escaping @Sendable (HTTPBodyWriter) async throws -> Void
    ) {
        connection.phase = .sending
        connection.task = Task { [mailbox, token = connection.token] in
            do {
                try await produce(HTTPBodyWriter(mailbox: mailbox, token: token))
                mailbox.post(.streamEnded(token, isComplete: true))
            } catch {
                mailbox.post(.streamEnded(token, isComplete: false))
            }
        }
    }

    /// Sends the next piece of a body. Its writer waits until the kernel has accepted it.
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
        sendSegments(connection)
    }

    /// Ends a streamed body, complete or not.
    func endStream(_ token: ConnectionToken, isComplete: Bool) {
        guard let connection = connections.find(token), let stream = connection.stream else { return }
        connection.task = nil
        guard isComplete else {
            // The client recognizes an incomplete body by the missing last chunk.
            close(connection)
            return
        }
        stream.hasEnded = true
        if stream.isChunked { connection.outgoing.append(Segment(Array("0\r\n\r\n".utf8))) }
        sendSegments(connection)
    }

    private func sendSegments(_ connection: Connection) {
        if connection.phase == .streaming {
            connection.phase = .sending
            watchRate(connection, moved: connection.acknowledgedBytes)
        }
        serve(connection)
    }

    /// Continues after all pieces so far were sent.
    private func continueStream(_ connection: Connection) -> Bool {
        guard let stream = connection.stream else { return true }
        stream.continuation?.resume(returning: true)
        stream.continuation = nil
        connection.deadline = .max
        guard stream.hasEnded else {
            connection.phase = .streaming
            if connection.peerHasClosed { startProbing(connection) }
            return false
        }
        connection.stream = nil
        recorder?.record(connection, isComplete: true)
        finish(connection)
        return true
    }

    // MARK: - Deadlines

    /// Handles a connection whose deadline has passed.
    func expire(_ connection: Connection) {
        connection.deadline = .max
        switch connection.phase {
        case .reading:
            if connection.unread.isEmpty {
                close(connection)
            } else {
                refuse(connection, .requestTimeout, RequestHead())
            }
        case .receiving:
            let count = connection.reception?.count ?? 0
            let isLate = clock.now >= connection.reception?.deadline ?? .max
            guard isLate || count - connection.rateMark < settings.bodyBytesPerWindow else {
                watchRate(connection, moved: count)
                return
            }
            abandonReception(connection)
            withKeptHead(connection) { refuse(connection, .requestTimeout, $0) }
        case .sending:
            let moved = connection.acknowledgedBytes
            guard moved - connection.rateMark < settings.bodyBytesPerWindow else {
                watchRate(connection, moved: moved)
                return
            }
            // Otherwise the kernel would offer its buffers to the silent client for minutes.
            _ = clinux_reset_on_close(connection.token.descriptor)
            close(connection)
        case .waiting, .streaming:
            if probe.hasLeft(connection, now: clock.now, isFirst: false) { close(connection) }
        case .discarding, .lingering: close(connection)
        case .staged, .closed: break
        }
    }

    /// Starts a window in which the rate of a body is measured.
    private func watchRate(_ connection: Connection, moved: Int) {
        connection.rateMark = moved
        let end = settings.bodyBytesPerWindow > 0 ? clock.now + settings.bodyRateWindow : .max
        connection.deadline = min(end, connection.reception?.deadline ?? .max)
    }
}

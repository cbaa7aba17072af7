/// Starts exchanges and passes their requests to the handler. Used by one loop thread.
final class RequestDispatcher {
    private let handler: any HTTPHandler
    private let proxies: TrustedProxies
    private let connectionLimit: ConnectionLimit
    private let responseTimeout: UInt64
    private let clock: LoopClock
    private var requestIDs = RequestIDGenerator()

    init(settings: LoopSettings, clock: LoopClock) {
        handler = settings.handler
        proxies = settings.proxies
        connectionLimit = settings.connectionLimit
        responseTimeout = settings.configuration.responseTimeout.nanoseconds
        self.clock = clock
    }

    /// Starts the exchange of a complete head and asks the handler for its reply.
    @inline(__always)
    func dispatch(_ connection: Connection, _ head: RequestHead) -> HTTPReply {
        let origin = startExchange(connection, head)
        connection.exchange.closes = !head.keepsAlive
        connection.exchange.awaitsContinue = head.expectsContinue
        connection.exchange.allowsInterim = head.minorVersion > 0
        connection.exchange.generatedID = hasUsableID(head) ? 0 : requestIDs.next()
        connection.body = head.framing == .none ? nil : BodyDecoder(head.framing)
        return withUnsafePointer(to: head) {
            handler.respond(to: HTTPRequest(head: $0, generatedID: connection.exchange.generatedID, origin: origin))
        }
    }

    /// Prepares the exchange of a request that the server refuses. The exchange may have started already.
    func startRefusal(_ connection: Connection, _ head: RequestHead) {
        if connection.exchange.started == 0 { _ = startExchange(connection, head) }
        if connection.exchange.generatedID == 0, !hasUsableID(head) { connection.exchange.generatedID = requestIDs.next() }
        connection.exchange.closes = true
    }

    private func startExchange(_ connection: Connection, _ head: RequestHead) -> TrustedProxies.Origin {
        let origin = proxies.origin(peer: connection.peer, head: head)
        if connection.mayBeProxy, head.isForwarded { connectionLimit.recognizeProxy(connection) }
        connection.exchange = Exchange(started: clock.now, client: origin.client, timeToSend: responseTimeout)
        connection.deadline = .max
        return origin
    }

    private func hasUsableID(_ head: RequestHead) -> Bool {
        guard let given = head.first(.requestID) else { return false }
        return RequestID.isUsable(given)
    }
}

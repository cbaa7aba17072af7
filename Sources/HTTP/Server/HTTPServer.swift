internal import Glibc
internal import Synchronization
package import SystemIO

/// An HTTP/1.1 server: loop threads that share nothing but their settings. Any thread.
///
/// ```
/// let server = try HTTPServer(configuration: configuration, handler: handler)
/// try server.start()
/// …
/// await server.drain()
/// ```
package final class HTTPServer: Sendable {
    private struct State {
        var isStarted = false
        var endpoints: [HTTPEndpoint] = []
        var mailboxes: [LoopMailbox] = []
        var loops: Countdown?
        var log: AccessLog?
        var logThread: Countdown?
    }

    private let settings: LoopSettings
    private let observers: [any HTTPObserver]
    private let state = Mutex(State())

    /// Creates a server that does not listen yet.
    ///
    /// - Parameters:
    ///   - observers: Receive finished requests. Without one, nothing is recorded.
    ///   - report: Receives events for operators on loop threads; must not block.
    package init(
        configuration: HTTPServerConfiguration, handler: any HTTPHandler, observers: [any HTTPObserver] = [],
        report: @escaping @Sendable (HTTPServerEvent) -> Void = { _ in }
    ) {
        settings = LoopSettings(configuration, handler: handler, report: report)
        self.observers = observers
    }

    deinit {
        // Loops hold no reference to the server, so releasing it ends them.
        for mailbox in state.withLock({ $0.mailboxes }) { mailbox.post(.stop) }
        state.withLock { $0.log }?.close()
    }

    /// The endpoints on which the server listens; empty before ``start()``.
    package var endpoints: [HTTPEndpoint] { state.withLock { $0.endpoints } }

    /// The TCP port on which the server listens; nil before ``start()`` or without TCP.
    package var port: Int? {
        for case .tcp(_, let port) in endpoints { return port }
        return nil
    }

    /// The server's counters.
    package var counters: HTTPServerCounters {
        HTTPServerCounters(
            openConnections: settings.connectionLimit.count, acceptedConnections: settings.connectionLimit.acceptedCount,
            refusedConnections: settings.connectionLimit.refusedCount, loadedPieces: settings.loader.loads)
    }

    /// Starts listening, starts the loop threads, and accepts connections from then on.
    ///
    /// - Throws: ``HTTPServerError``; the server then does not listen anywhere.
    package func start() throws(HTTPServerError) {
        let isFirst = state.withLock { state in
            defer { state.isStarted = true }
            return !state.isStarted
        }
        guard isFirst else { throw .alreadyStarted }
        let listeners = try listen()
        do throws(SystemError) {
            try startLoops(listeners, log: startLog())
        } catch {
            for mailbox in state.withLock({ $0.mailboxes }) { mailbox.post(.stop) }
            throw .system(error)
        }
    }

    /// Creates the listeners of each loop: its own TCP socket, and Unix or inherited sockets shared by all loops.
    private func listen() throws(HTTPServerError) -> [[Listener]] {
        let configuration = settings.configuration
        let threads = configuration.threads ?? Processors.available
        if configuration.usesSocketActivation {
            let inherited = try Listener.inherited(SocketActivation().descriptors)
            if !inherited.isEmpty {
                state.withLock { $0.endpoints = inherited.map(\.endpoint) }
                return Array(repeating: inherited, count: threads)
            }
        }
        var shared: [Listener] = []
        var own: [Listener] = []
        if let host = configuration.host {
            own = try Listener.tcp(host: host, port: configuration.port, count: threads)
        }
        if let path = configuration.unixPath {
            let listener = try Listener.unix(path: path, mode: configuration.unixMode, group: configuration.unixGroup)
            shared.append(listener)
        }
        state.withLock { $0.endpoints = (own.prefix(1) + shared).map(\.endpoint) }
        return (0..<threads).map { index in own.isEmpty ? shared : [own[index]] + shared }
    }

    private func startLog() throws(SystemError) -> AccessLog? {
        if observers.isEmpty { return nil }
        let log = AccessLog(observers: observers)
        let thread = Countdown(1)
        try Self.startThread(name: "http-log") {
            log.run()
            thread.decrement()
        }
        state.withLock { state in
            state.log = log
            state.logThread = thread
        }
        return log
    }

    private func startLoops(_ listeners: [[Listener]], log: AccessLog?) throws(SystemError) {
        var all: [LoopParts] = []
        for own in listeners { all.append(try LoopParts(settings: settings, listeners: own, log: log)) }
        let countdown = Countdown(0)
        state.withLock { state in
            state.mailboxes = all.map(\.mailbox)
            state.loops = countdown
        }
        for parts in all {
            countdown.increment()
            do throws(SystemError) {
                try Self.startThread(name: "http-loop") {
                    EventLoop(parts).run()
                    countdown.decrement()
                }
            } catch {
                countdown.decrement()
                throw error
            }
        }
    }

    private static func startThread(name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) {
        guard let thread = SystemThread.start(name: name, body) else { throw SystemError("pthread_create", code: EAGAIN) }
        thread.detach()
    }

    /// Calls `action` once every loop has taken a turn or ended; never if a loop hangs.
    ///
    /// - Parameter action: Called on a loop or on the calling thread; must not block.
    package func ping(_ action: @escaping @Sendable () -> Void) {
        let mailboxes = state.withLock(\.mailboxes)
        let ping = LoopPing(loops: mailboxes.count, action)
        for mailbox in mailboxes where !mailbox.post(.ping(ping)) { ping.answer() }
    }

    /// Stops gracefully: stops listening, closes connections without a request, and answers requests in progress with
    /// `Connection: close`. Returns when all connections are closed, at most after ``HTTPServerConfiguration/drainTimeout``,
    /// and the observers have received every request.
    package func drain() async {
        await end(.drain)
    }

    /// Closes all connections at once, and returns when the loops have ended.
    package func stop() async {
        await end(.stop)
    }

    private func end(_ message: LoopMailbox.Message) async {
        let (mailboxes, loops, log, logThread) = state.withLock { ($0.mailboxes, $0.loops, $0.log, $0.logThread) }
        for mailbox in mailboxes { mailbox.post(message) }
        await loops?.wait()
        log?.close()
        await logThread?.wait()
    }
}

/// An event that may require an operator's attention.
package enum HTTPServerEvent: Sendable, Equatable {
    /// Requests come through a proxy that is not in ``HTTPServerConfiguration/trustedProxies``. Reported once per proxy.
    /// The address is nil for the Unix socket.
    case unlistedProxy(IPAddress?)
    /// Connections were refused because their client was at its limit. Reported once a minute, with the latest client.
    ///
    /// - Parameter count: The refused connections of all clients since the last report.
    case refusedConnections(of: IPAddress, count: Int, limit: Int)
    /// The system refuses new connections, which the server tries again. Reported when the error is new.
    case notAccepting(SystemError)
}

extension HTTPServerEvent: CustomStringConvertible {
    /// A line for the log.
    package var description: String {
        switch self {
        case .unlistedProxy(let peer?): "clients behind \(peer) count as one: set server.trusted_proxies=\(peer)"
        case .unlistedProxy(nil): "clients behind the Unix socket count as one: set server.trusted_proxies=unix"
        case .refusedConnections(let peer, let count, let limit):
            "refused \(count) connections beyond server.max_connections_per_client (\(limit)), the last one from \(peer)"
        case .notAccepting(let error): "the system lets no connection be accepted: \(error)"
        }
    }
}

/// The server's counters.
package struct HTTPServerCounters: Sendable, Equatable {
    /// The number of open connections.
    package let openConnections: Int
    /// Connections accepted since the start.
    package let acceptedConnections: Int
    /// Connections refused since the start because their client was at its limit.
    package let refusedConnections: Int
    /// Pieces of files that were not in the page cache when they were about to be sent.
    package let loadedPieces: Int
}

/// Lets tasks wait until all threads of a server have ended. Any thread.
private final class Countdown: Sendable {
    private let count: Atomic<Int>
    private let waiters = Waiters()

    init(_ count: Int) {
        self.count = Atomic(count)
    }

    func increment() {
        count.add(1, ordering: .acquiringAndReleasing)
    }

    func decrement() {
        if count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { waiters.notify() }
    }

    /// Returns once the count is 0, even if the task is cancelled.
    func wait() async {
        let wait = Task { await waiters.wait { count.load(ordering: .acquiring) <= 0 } }
        await wait.value
    }
}

extension HTTPServerConfiguration {
    /// Resolves ``host`` and briefly listens there on a free port. Blocks during name lookup.
    ///
    /// - Throws: ``HTTPServerError`` if the host is unknown or not an address of this machine.
    package func checkHost() throws(HTTPServerError) {
        if let host { _ = try Listener.tcp(host: host, port: 0, count: 1) }
    }

    /// Looks up the group of ``unixPath``. Blocks during the lookup.
    ///
    /// - Throws: ``HTTPServerError/unknownGroup(_:)``
    package func checkGroup() throws(HTTPServerError) {
        if unixPath != nil { _ = try Listener.identifier(ofGroup: unixGroup) }
    }
}

/// A reason why the server could not start.
package enum HTTPServerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The host is neither an address nor a name that resolves to an address.
    case unknownHost(String)
    /// The group of the Unix socket's path is neither a number nor the name of a group.
    case unknownGroup(String)
    /// Another process listens on this endpoint.
    case addressInUse(String)
    /// The Unix socket's path names another kind of file, which is not replaced.
    case notASocket(String)
    /// No interface of this machine has the host's address.
    case addressNotAvailable(String)
    /// The user lacks permission to listen on this endpoint.
    case permissionDenied(String)
    /// A descriptor that systemd passed is not a listening stream socket.
    case notAListeningSocket(Int32)
    /// ``HTTPServer/start()`` was called twice.
    case alreadyStarted
    /// Another system call failed.
    case system(SystemError)

    package var description: String {
        switch self {
        case .unknownHost(let host): "The host \(host) cannot be resolved to an address."
        case .unknownGroup(let group): "The group \(group) does not exist."
        case .addressInUse(let endpoint): "Another process already listens on \(endpoint)."
        case .notASocket(let path): "\(path) exists and is not a socket."
        case .addressNotAvailable(let endpoint): "\(endpoint): this machine does not have the address."
        case .permissionDenied(let endpoint): "The user lacks the permission to listen on \(endpoint)."
        case .notAListeningSocket(let number): "Descriptor \(number), passed by systemd, is not a listening stream socket."
        case .alreadyStarted: "The server has been started already."
        case .system(let error): "The server could not start: \(error)."
        }
    }

    /// Returns the error for a failure to listen on `endpoint`, from the calling thread's `errno`.
    static func listening(at endpoint: String) -> HTTPServerError {
        switch errno {
        case EADDRINUSE: .addressInUse(endpoint)
        case EADDRNOTAVAIL: .addressNotAvailable(endpoint)
        case EACCES, EPERM: .permissionDenied(endpoint)
        default: .system(.last("listen on \(endpoint)"))
        }
    }
}

/// An endpoint on which the server listens.
package enum HTTPEndpoint: Sendable, Hashable, CustomStringConvertible {
    case tcp(address: IPAddress, port: Int)
    case unix(path: String)

    package var description: String {
        switch self {
        case .tcp(let address, let port): address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
        case .unix(let path): "unix:\(path)"
        }
    }
}

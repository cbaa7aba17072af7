internal import Synchronization
internal import SystemIO

/// The state that all loops of a server share: the handler, the configuration, and values derived from it.
struct LoopSettings: Sendable {
    let configuration: HTTPServerConfiguration
    let handler: any HTTPHandler
    let proxies: TrustedProxies
    let parser: RequestHeadParser
    /// Nanoseconds between checks of all deadlines, which bounds the delay of a timeout.
    let sweepInterval: UInt64
    let connectionLimit: ConnectionLimit
    let loader = FileLoader()

    init(
        _ configuration: HTTPServerConfiguration, handler: any HTTPHandler,
        report: @escaping @Sendable (HTTPServerEvent) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.handler = handler
        proxies = TrustedProxies(configuration.trustedProxies, configuration.forwardedField)
        var limits = HeadLimits()
        limits.head = configuration.maxHeadBytes
        limits.target = configuration.maxTargetBytes
        parser = RequestHeadParser(limits: limits)
        let shortest = min(
            configuration.headTimeout, configuration.idleTimeout, configuration.bodyTimeout, configuration.bodyRateWindow,
            configuration.responseTimeout)
        sweepInterval = max(10_000_000, min(1_000_000_000, shortest.nanoseconds / 8))
        connectionLimit = ConnectionLimit(
            configuration.maxConnections, perClient: configuration.maxConnectionsPerClient, proxies: proxies,
            report: report)
    }
}

/// The parts of a loop whose creation can fail, created before its thread starts.
final class LoopParts: Sendable {
    let settings: LoopSettings
    let log: AccessLog?
    let mailbox: LoopMailbox
    let poller: Poller
    private let listeners: Mutex<[Listener]>

    /// Tokens below 2^32 identify no connection: the last is the mailbox's, the first are the listeners'.
    static let mailboxToken: UInt64 = 0xFFFF_FFFF

    init(settings: LoopSettings, listeners: [Listener], log: AccessLog?) throws(SystemError) {
        self.settings = settings
        self.listeners = Mutex(listeners)
        self.log = log
        mailbox = try LoopMailbox()
        poller = try Poller()
        try poller.addReadable(mailbox.wakeup.number, token: Self.mailboxToken)
        try poller.add(listeners)
    }

    /// Transfers the listeners to the loop, which alone decides when they are closed.
    func takeListeners() -> [Listener] {
        listeners.withLock { listeners in
            defer { listeners = [] }
            return listeners
        }
    }
}

extension Poller {
    /// Watches listeners, using their indices as tokens.
    func add(_ listeners: [Listener]) throws(SystemError) {
        for (index, listener) in listeners.enumerated() {
            try addReadable(listener.descriptor.number, token: UInt64(index), shared: listener.isShared)
        }
    }

    func remove(_ listeners: [Listener]) {
        for listener in listeners { remove(listener.descriptor.number) }
    }
}

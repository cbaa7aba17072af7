internal import Synchronization
internal import SystemIO

/// The state shared by all loops of a server: the handler, and the settings in the units that a loop uses.
struct LoopSettings: Sendable {
    let handler: any HTTPHandler
    let recordsClientFields: Bool
    let proxies: TrustedProxies
    let parser: RequestHeadParser
    let maxDiscarded: Int
    let maxBody: Int
    /// Times in nanoseconds.
    let headTimeout: UInt64
    let idleTimeout: UInt64
    let drainTimeout: UInt64
    let handshakeTimeout: UInt64
    let bodyTimeout: UInt64
    let bodyRateWindow: UInt64
    let responseTimeout: UInt64
    /// The minimum number of body bytes to transfer in one window.
    let bodyBytesPerWindow: Int
    /// Nanoseconds between checks of all deadlines, which bounds the delay of a timeout.
    let sweepInterval: UInt64
    let connectionLimit: ConnectionLimit
    let loader = FileLoader()
    /// See ``PeerProbe``.
    let looksUpLocalPeers: Bool

    init(
        _ configuration: HTTPServerConfiguration, handler: any HTTPHandler,
        report: @escaping @Sendable (HTTPServerEvent) -> Void = { _ in }
    ) {
        self.handler = handler
        recordsClientFields = configuration.recordsClientFields
        proxies = TrustedProxies(configuration.trustedProxies, configuration.forwardedField)
        var limits = HeadLimits()
        limits.head = configuration.maxHeadBytes
        limits.target = configuration.maxTargetBytes
        parser = RequestHeadParser(limits: limits)
        maxDiscarded = configuration.maxDiscardedBytes
        maxBody = configuration.maxBodyBytes
        headTimeout = configuration.headTimeout.nanoseconds
        idleTimeout = configuration.idleTimeout.nanoseconds
        drainTimeout = configuration.drainTimeout.nanoseconds
        handshakeTimeout = configuration.handshakeTimeout.nanoseconds
        bodyTimeout = configuration.bodyTimeout.nanoseconds
        bodyRateWindow = configuration.bodyRateWindow.nanoseconds
        responseTimeout = configuration.responseTimeout.nanoseconds
        bodyBytesPerWindow = configuration.minBodyRate * Int(bodyRateWindow / 1_000_000) / 1000
        let shortest = min(headTimeout, idleTimeout, bodyTimeout, bodyRateWindow, responseTimeout)
        sweepInterval = max(10_000_000, min(1_000_000_000, shortest / 8))
        connectionLimit = ConnectionLimit(
            configuration.maxConnections, perClient: configuration.maxConnectionsPerClient, proxies: proxies,
            report: report)
        looksUpLocalPeers = configuration.looksUpLocalPeers
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

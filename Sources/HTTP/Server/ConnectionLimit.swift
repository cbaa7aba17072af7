internal import Synchronization
internal import SystemIO

/// The total and per-client connection limits, shared by all loops of a server. Any thread; a lock is held for one dictionary
/// access.
///
/// A proxy's connections belong to many clients, so only the total limit applies to them. This includes proxies on this machine
/// or a private network that are missing from the settings, once a request has revealed them.
final class ConnectionLimit: Sendable {
    private struct State {
        var clients: [ClientNetwork: Int] = [:]
        /// The recognized proxies that are missing from the settings; nil for the Unix socket.
        var unlisted: Set<ClientNetwork?> = []
        /// The number of connections refused since the last report.
        var unreported = 0
        /// When refused connections may be reported again, in nanoseconds of a loop's clock.
        var nextReport: UInt64 = 0
    }

    private let limit: Int
    private let perClient: Int
    private let proxies: TrustedProxies
    /// Receives events on loop threads; must not block.
    let report: @Sendable (HTTPServerEvent) -> Void
    private let open = Atomic(0)
    private let accepted = Atomic(0)
    private let refused = Atomic(0)
    private let answering = Atomic(0)
    private let unlistedProxies = Atomic(0)
    private let pausedLoops = Atomic(0)
    private let state = Mutex(State())

    /// The maximum number of recognized proxies. A private network has few; clients may pose as proxies, hence the bound.
    private static let mostUnlisted = 256
    private static let reportInterval: UInt64 = 60_000_000_000

    init(
        _ limit: Int, perClient: Int = .max, proxies: TrustedProxies = TrustedProxies(),
        report: @escaping @Sendable (HTTPServerEvent) -> Void = { _ in }
    ) {
        self.limit = limit
        self.perClient = perClient
        self.proxies = proxies
        self.report = report
    }

    var count: Int { open.load(ordering: .relaxed) }

    /// Whether no more connections may be accepted. Loops that check at the same time may exceed the limit by one each.
    var isReached: Bool { count >= limit }

    /// Whether clients of any loop are waiting for a connection to end.
    var isContended: Bool { pausedLoops.load(ordering: .relaxed) > 0 }

    /// Connections accepted since the start.
    var acceptedCount: Int { accepted.load(ordering: .relaxed) }

    /// Connections refused since the start because their client was at its limit.
    var refusedCount: Int { refused.load(ordering: .relaxed) }

    /// Returns the client against whose limit a connection counts; nil for a proxy or a Unix socket.
    func client(of peer: IPAddress?) -> ClientNetwork? {
        guard let peer, !proxies.contains(peer) else { return nil }
        let client = ClientNetwork(peer)
        return state.withLock { $0.unlisted.contains(client) } ? nil : client
    }

    /// Whether a client is at its limit. Loops that check at the same time may exceed the limit by one each.
    func isReached(by client: ClientNetwork) -> Bool {
        state.withLock { !$0.unlisted.contains(client) && $0.clients[client] ?? 0 >= perClient }
    }

    func enter(_ connection: Connection) {
        open.wrappingAdd(1, ordering: .relaxed)
        accepted.wrappingAdd(1, ordering: .relaxed)
        connection.mayBeProxy = proxies.mayBeUnlisted(connection.peer)
        if connection.isRefused {
            answering.wrappingAdd(1, ordering: .relaxed)
        } else if let client = client(of: connection.peer) {
            connection.client = client
            state.withLock { $0.clients[client, default: 0] += 1 }
        }
    }

    func leave(_ connection: Connection) {
        open.wrappingSubtract(1, ordering: .relaxed)
        if connection.isRefused { answering.wrappingSubtract(1, ordering: .relaxed) }
        guard let client = connection.client else { return }
        state.withLock { state in
            let count = state.clients[client] ?? 0
            state.clients[client] = count > 1 ? count - 1 : nil
        }
    }

    // MARK: Refusals

    /// Whether the number of refused connections waiting for their response has reached its limit, so that a further one is
    /// answered and closed at once. Refused connections must not use up the connections of other clients.
    var hasManyRefused: Bool { answering.load(ordering: .relaxed) >= max(1, limit / 8) }

    /// Counts a connection refused because its client is at its limit, and reports refusals once a minute.
    ///
    /// - Parameter now: Nanoseconds of the loop's clock.
    func refuse(_ peer: IPAddress?, at now: UInt64) {
        refused.wrappingAdd(1, ordering: .relaxed)
        let count = state.withLock { state -> Int? in
            state.unreported += 1
            guard now >= state.nextReport else { return nil }
            state.nextReport = now + Self.reportInterval
            defer { state.unreported = 0 }
            return state.unreported
        }
        if let count, let peer { report(.refusedConnections(of: peer.unmapped, count: count, limit: perClient)) }
    }

    // MARK: Proxies

    /// The number of recognized proxies that are missing from the settings.
    var unlistedProxyCount: Int { unlistedProxies.load(ordering: .relaxed) }

    /// Records that a connection's peer is a proxy missing from the settings.
    func recognizeProxy(_ connection: Connection) {
        connection.mayBeProxy = false
        let network = connection.peer.map(ClientNetwork.init)
        let isNew = state.withLock { state in
            state.unlisted.count < Self.mostUnlisted && state.unlisted.insert(network).inserted
        }
        guard isNew else { return }
        unlistedProxies.wrappingAdd(1, ordering: .relaxed)
        report(.unlistedProxy(connection.peer?.unmapped))
    }

    func pause() { pausedLoops.wrappingAdd(1, ordering: .relaxed) }
    func resume() { pausedLoops.wrappingSubtract(1, ordering: .relaxed) }
}

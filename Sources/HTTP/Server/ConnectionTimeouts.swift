internal import CLinux

/// The deadlines of connections, and what happens when a deadline has passed. Used by one loop thread.
struct ConnectionTimeouts {
    /// The loop's reaction to a passed deadline.
    enum Verdict {
        /// The connection has a new deadline or needs none.
        case `continue`
        case close
        /// The client accepts no bytes. The connection is reset, because the kernel would otherwise retry sending for minutes.
        case reset
        /// A request has begun but did not arrive in time.
        case timedOut
    }

    /// How long input is awaited after the last response, so that no reset destroys the response, and how long it is read in total.
    /// Some proxies (Apache, Varnish) read a refusal only after the whole upload.
    private static let lingerTime: UInt64 = 3_000_000_000
    private static let longestLingerTime: UInt64 = 30_000_000_000
    /// How long to wait for the request of a refused connection, whose client expects to be served.
    private static let refusalTime: UInt64 = 1_000_000_000

    /// Nanoseconds by which each byte of a response extends its time limit.
    private static let timePerByte = UInt64(1_000_000_000 / HTTPServerConfiguration.responseBytesPerSecond)

    private let clock: LoopClock
    private let probe: PeerProbe
    private let headTimeout: UInt64
    private let idleTimeout: UInt64
    private let rateWindow: UInt64
    /// The minimum number of body bytes to transfer in one window.
    private let bytesPerWindow: Int
    private let responseTimeout: UInt64

    init(settings: LoopSettings, clock: LoopClock) {
        self.clock = clock
        let configuration = settings.configuration
        probe = PeerProbe(looksUpLocalPeers: configuration.looksUpLocalPeers)
        headTimeout = configuration.headTimeout.nanoseconds
        idleTimeout = configuration.idleTimeout.nanoseconds
        rateWindow = configuration.bodyRateWindow.nanoseconds
        bytesPerWindow = configuration.minBodyRate * Int(rateWindow / 1_000_000) / 1000
        responseTimeout = configuration.responseTimeout.nanoseconds
    }

    /// Limits the time until the head of a request has arrived.
    func awaitHead(_ connection: Connection) {
        connection.isWithinHead = true
        connection.deadline = clock.now + (connection.isRefused ? min(headTimeout, Self.refusalTime) : headTimeout)
    }

    /// Limits the time until the next request begins.
    func becomeIdle(_ connection: Connection) {
        connection.isWithinHead = false
        connection.idleSince = clock.now
        connection.deadline = clock.now + idleTimeout
    }

    /// Limits the time until the rest of a body without a sink has arrived.
    func awaitDiscardedBody(_ connection: Connection) {
        connection.deadline = clock.now + headTimeout
    }

    /// Limits the time until the client sends more, or closes the connection, after its last response.
    func linger(_ connection: Connection) {
        connection.windowStart = clock.now
        connection.deadline = clock.now + Self.lingerTime
    }

    /// Extends the time after input has arrived, except for a refused connection, which has no place of its own.
    func continueLingering(_ connection: Connection) {
        guard !connection.isRefused else { return }
        connection.deadline = min(clock.now + Self.lingerTime, connection.windowStart + Self.longestLingerTime)
    }

    /// Starts a window that measures the rate of a request body.
    func watchReceiving(_ connection: Connection) {
        watch(connection, moved: connection.reception?.count ?? 0)
    }

    /// Starts a window that measures the rate of a response.
    func watchSending(_ connection: Connection) {
        watchSending(connection, moved: connection.acknowledgedBytes)
    }

    private func watchSending(_ connection: Connection, moved: Int) {
        watch(connection, moved: moved)
        let (end, overflow) = clock.now.addingReportingOverflow(connection.exchange.timeToSend)
        connection.deadline = min(connection.deadline, overflow ? .max : end)
    }

    /// Ends a window of a response before its deadline, because the next piece is not available yet.
    func endSending(_ connection: Connection) {
        countTime(connection, moved: connection.acknowledgedBytes)
        connection.deadline = .max
    }

    /// Subtracts the window's duration from the response's remaining time, and adds the time earned by its bytes.
    private func countTime(_ connection: Connection, moved: Int) {
        let used = clock.now - min(clock.now, connection.windowStart)
        // At most 2⁵⁶ nanoseconds, plus a setting of at most 2⁶³, so the sum does not overflow.
        let earned = UInt64(min(max(0, moved - connection.rateMark), 1 << 40)) * Self.timePerByte
        let left = min(connection.exchange.timeToSend, responseTimeout) + earned
        connection.exchange.timeToSend = min(left - min(left, used), responseTimeout)
    }

    private func watch(_ connection: Connection, moved: Int) {
        connection.rateMark = moved
        connection.windowStart = clock.now
        let end = bytesPerWindow > 0 ? clock.now + rateWindow : .max
        connection.deadline = min(end, connection.reception?.deadline ?? .max)
    }

    /// Whether a client that has just closed its sending half is known to have left. If not, it is probed later.
    func hasLeft(_ connection: Connection) -> Bool {
        probe.hasLeft(connection, now: clock.now, isFirst: true)
    }

    /// Returns the reaction to a connection's passed deadline.
    func judge(_ connection: Connection) -> Verdict {
        let deadline = connection.deadline
        connection.deadline = .max
        switch connection.phase {
        case .reading: return connection.hasBegunRequest ? .timedOut : .close
        case .receiving:
            let count = connection.reception?.count ?? 0
            let isLate = clock.now >= connection.reception?.deadline ?? .max
            guard !isLate, count - connection.rateMark >= bytesPerWindow else { return .timedOut }
            watch(connection, moved: count)
            return .continue
        case .sending:
            let moved = connection.acknowledgedBytes
            countTime(connection, moved: moved)
            // The rate is measured over whole windows. The end of the response's time limit truncates the last window.
            let isWholeWindow = deadline - min(deadline, connection.windowStart) >= rateWindow
            let isTooSlow = isWholeWindow && moved - connection.rateMark < bytesPerWindow
            guard !isTooSlow, connection.exchange.timeToSend > 0 else { return .reset }
            watchSending(connection, moved: moved)
            return .continue
        case .waiting, .streaming: return probe.hasLeft(connection, now: clock.now, isFirst: false) ? .close : .continue
        case .discarding, .lingering: return .close
        case .staged, .loading, .closed: return .continue
        }
    }
}

/// Determines whether a client that has closed its sending half still waits for its response.
///
/// A FIN arrives both from a client that has sent everything and continues to read (`shutdown(SHUT_WR)`; it must get its
/// response) and from a client that has closed its socket (its work must not occupy the queue). Three signs distinguish them:
///
/// - A closed Unix socket reports a hang-up.
/// - The kernel knows the state of sockets on this machine, such as those of a proxy in front of the server (sock_diag(7)).
/// - A closed TCP socket answers any further byte with a reset. The only bytes that may precede the response are an interim
///   response (RFC 9110 section 15.2), and `100 Continue` is the one that every client skips. The loop sends it one second
///   after the FIN, because most responses are complete by then, and again at doubling intervals. An HTTP/1.0 client must not
///   get an interim response, so its work continues to the end.
struct PeerProbe {
    private static let firstInterval: UInt64 = 1_000_000_000
    private static let longestInterval: UInt64 = 30_000_000_000

    private enum Finding {
        case isClosed, isOpen
        /// Only a reset would reveal the state.
        case isUnknown
    }

    /// Whether to ask the kernel about sockets on this machine.
    let looksUpLocalPeers: Bool

    /// Whether the client of a connection that waits for a response has left. If not, sets the deadline of the next check.
    ///
    /// - Parameters:
    ///   - now: Nanoseconds of the loop's clock.
    ///   - isFirst: Whether the FIN has just been reported; later calls may send an interim response.
    func hasLeft(_ connection: Connection, now: UInt64, isFirst: Bool) -> Bool {
        if isFirst { connection.probeInterval = Self.firstInterval }
        switch find(connection) {
        case .isClosed: return true
        case .isOpen: break
        case .isUnknown:
            guard !isFirst else { break }
            connection.probeInterval = min(connection.probeInterval * 2, Self.longestInterval)
            let mayProbe = connection.phase == .waiting && connection.exchange.allowsInterim
            if mayProbe, !connection.sendContinue() { return true }
        }
        connection.deadline = now + connection.probeInterval
        return false
    }

    /// Asks the kernel about the other end of a connection. Takes about ten microseconds.
    private func find(_ connection: Connection) -> Finding {
        guard looksUpLocalPeers else { return .isUnknown }
        switch clinux_peer_is_closed(connection.token.descriptor) {
        case 0: return .isOpen
        case 1: return .isClosed
        default: return .isUnknown
        }
    }
}

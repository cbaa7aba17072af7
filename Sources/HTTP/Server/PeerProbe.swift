internal import CLinux

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

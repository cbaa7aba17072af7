internal import CLinux

/// Clients that close their sending half while they wait for an answer.
///
/// A FIN arrives both from a client that has sent all it wants to send and reads on (`shutdown(SHUT_WR)`, which entitles it to
/// its answer) and from one that has closed its socket and reads nothing. The first must be answered, and work for the second
/// must not occupy the queue. Three things tell them apart:
///
/// - A Unix socket that was closed reports a hang-up.
/// - The kernel knows about sockets on this machine, such as those of a proxy in front of the server (sock_diag(7)).
/// - Any byte that is sent to a closed TCP socket is answered with a reset. The only bytes that may be sent before the answer are
///   an interim answer (RFC 9110 section 15.2); `100 Continue` is the one that every client discards. It is sent a second
///   after the FIN, since most answers are ready by then, and again after intervals that double. A client of HTTP/1.0 gets none,
///   so work for it continues to its end.
extension EventLoop {
    private static let firstProbeInterval: UInt64 = 1_000_000_000
    private static let longestProbeInterval: UInt64 = 30_000_000_000

    /// Starts to find out whether a client that has closed its sending half still waits for its answer. Closes the connection
    /// where it is known at once that it does not.
    func beginProbing(_ connection: Connection) {
        connection.probeInterval = Self.firstProbeInterval
        if isLocalPeerClosed(connection) == true {
            close(connection)
        } else {
            connection.deadline = clock.now + connection.probeInterval
        }
    }

    /// Checks again, and provokes a reset where only that can tell.
    func probe(_ connection: Connection) {
        switch isLocalPeerClosed(connection) {
        case true?:
            close(connection)
            return
        case false?: break
        case nil:
            connection.probeInterval = min(connection.probeInterval * 2, Self.longestProbeInterval)
            if connection.phase == .waiting, connection.exchange.allowsInterim { sendContinue(connection) }
        }
        connection.deadline = clock.now + connection.probeInterval
    }

    /// Whether no process holds the other end of the connection; nil where this machine cannot tell.
    private func isLocalPeerClosed(_ connection: Connection) -> Bool? {
        guard settings.looksUpLocalPeers else { return nil }
        switch clinux_peer_is_closed(connection.token.descriptor) {
        case 0: return false
        case 1: return true
        default: return nil
        }
    }
}

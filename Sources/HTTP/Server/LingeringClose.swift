internal import Glibc

/// The close of a connection after its last response. If input is unread, closing at once would make the kernel send a reset,
/// which may destroy the response in transit (RFC 9112 section 9.6).
///
/// Used by one loop thread.
struct LingeringClose {
    let timeouts: ConnectionTimeouts
    let input: InputBuffer

    /// Whether there may be unread input that the kernel would answer with a reset.
    func isNeeded(_ connection: Connection) -> Bool {
        let hasInput = connection.hasPipelined || connection.isReadable || !connection.unread.isEmpty
        return connection.body != nil || connection.hasUnusableInput || hasInput
    }

    /// Closes the sending half, so that the client closes the connection after the response.
    func start(_ connection: Connection) {
        shutdown(connection.token.descriptor, Int32(SHUT_WR))
        connection.phase = .lingering
        connection.body = nil
        connection.unread = []
        timeouts.linger(connection)
    }

    func discardInput(_ connection: Connection) -> Arrival {
        connection.unread = []
        let arrival = connection.receive(into: input.freeSpace(after: 0))
        if case .bytes(let read) = arrival {
            connection.budget -= read
            timeouts.continueLingering(connection)
        }
        return arrival
    }
}

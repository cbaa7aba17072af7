internal import CLinux

/// The end of a connection after its last response. If the client has sent more than was read, closing at once would make the
/// kernel send a reset, which may destroy the response on its way (RFC 9112 section 9.6).
///
/// It belongs to one loop thread.
struct LingeringClose {
    let timeouts: ConnectionTimeouts
    let input: InputBuffer

    /// Whether input may be left that the kernel would answer with a reset.
    func isNeeded(_ connection: Connection) -> Bool {
        let hasInput = connection.hasPipelined || connection.isReadable || !connection.unread.isEmpty
        return connection.body != nil || connection.hasUnusableInput || hasInput
    }

    /// Ends the sending half, so that the client closes the connection after the response.
    func start(_ connection: Connection) {
        _ = clinux_shutdown_send(connection.token.descriptor)
        connection.phase = .lingering
        connection.body = nil
        connection.unread = []
        timeouts.linger(connection)
    }

    /// Reads and drops what has arrived.
    func discardInput(_ connection: Connection) -> Arrival {
        connection.unread = []
        let arrival = connection.receive(into: input.freeSpace(after: 0))
        if case .bytes(let read) = arrival { connection.budget -= read }
        return arrival
    }
}

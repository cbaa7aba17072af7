/// Sends a streamed body piece by piece. Writes are made one after the other, by one task.
package struct HTTPBodyWriter: Sendable {
    private let mailbox: LoopMailbox
    private let token: ConnectionToken

    init(mailbox: LoopMailbox, token: ConnectionToken) {
        self.mailbox = mailbox
        self.token = token
    }

    /// Sends `bytes`, and returns once the kernel has taken them all: a slow client slows its writer down.
    ///
    /// - Throws: ``HTTPClientLeft`` when the connection has ended; nothing more need be written then.
    package func write(_ bytes: [UInt8]) async throws(HTTPClientLeft) {
        if bytes.isEmpty { return }
        let isSent = await withCheckedContinuation { continuation in
            if !mailbox.post(.chunk(token, bytes, continuation)) { continuation.resume(returning: false) }
        }
        if !isSent { throw HTTPClientLeft() }
    }
}

/// The client of a streamed body is gone.
package struct HTTPClientLeft: Error, Equatable, Sendable {
    package init() {}
}

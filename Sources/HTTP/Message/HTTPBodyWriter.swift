/// Sends a streamed body piece by piece. One task at a time writes to it.
package struct HTTPBodyWriter: Sendable {
    private let mailbox: LoopMailbox
    private let token: ConnectionToken

    init(mailbox: LoopMailbox, token: ConnectionToken) {
        self.mailbox = mailbox
        self.token = token
    }

    /// Sends `bytes`, and returns when the kernel has accepted all of them: a slow client slows its writer down.
    ///
    /// - Throws: ``HTTPClientLeft`` after the connection has ended.
    package func write(_ bytes: [UInt8]) async throws(HTTPClientLeft) {
        if bytes.isEmpty { return }
        let isSent = await withCheckedContinuation { continuation in
            if !mailbox.post(.chunk(token, bytes, continuation)) { continuation.resume(returning: false) }
        }
        if !isSent { throw HTTPClientLeft() }
    }
}

/// The client of a streamed body has closed the connection.
package struct HTTPClientLeft: Error, Equatable, Sendable {
    package init() {}
}

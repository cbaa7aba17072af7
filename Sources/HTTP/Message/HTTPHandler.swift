/// Handles requests.
package protocol HTTPHandler: Sendable {
    /// Decides how to answer a request whose head has arrived.
    ///
    /// Called on loop threads, for several connections at the same time. Must not block: work that waits belongs in
    /// ``HTTPReply/later(_:)``. The request is a view of the read buffer, valid only during the call.
    func respond(to request: borrowing HTTPRequest) -> HTTPReply

    /// Creates the response to a request that the server itself refuses. The server sets its status to that of the error.
    ///
    /// Called on loop threads; must not block.
    func response(to error: HTTPProtocolError) -> HTTPResponse
}

/// A handler's decision about a request.
package enum HTTPReply {
    /// A response that is available now and is sent in the same turn of the loop.
    case now(HTTPResponse)
    /// A response that takes time: the closure runs in its own task, and the connection waits without a thread.
    ///
    /// If the client leaves, the task is cancelled and its result is discarded. A client that has closed only its sending half
    /// (`printf … | nc`) still gets the response.
    case later(@Sendable () async -> HTTPResponse)
    /// The sink receives the body as it arrives and then decides the reply.
    case receive(any HTTPBodySink)
}

/// Receives a request body as it arrives. All calls come from the connection's loop thread, in order.
package protocol HTTPBodySink: AnyObject {
    /// The maximum number of bytes. A longer body gets 413: before anything is read if `Content-Length` exceeds the limit,
    /// otherwise as soon as the received bytes do.
    var limit: Int { get }

    /// Receives the next bytes of the body, which are valid only during the call. Must not block for long.
    ///
    /// - Throws: ``HTTPBodyRefusal`` to respond at once without reading the rest; any other error causes a 500.
    func write(_ bytes: UnsafeRawBufferPointer) throws

    /// Decides the reply to a complete body. The reply must not be ``HTTPReply/receive(_:)``.
    func finish() -> HTTPReply

    /// Discards an incomplete body: the client left, was too slow, sent too much or was refused. Called at most once, and never
    /// after ``finish()``.
    func abort()
}

/// Thrown by a sink to refuse a body before its end.
package struct HTTPBodyRefusal: Error, Sendable {
    /// The response, after which the connection is closed.
    package let response: HTTPResponse

    package init(_ response: HTTPResponse) {
        self.response = response
    }
}

/// Sends a streamed body piece by piece. Used by one task at a time.
package struct HTTPBodyWriter: Sendable {
    let mailbox: LoopMailbox
    let token: ConnectionToken

    /// Sends `bytes` and returns once the kernel has accepted all of them, so that a slow client slows the writer down.
    ///
    /// - Throws: ``HTTPClientLeft`` if the connection has ended.
    package func write(_ bytes: [UInt8]) async throws(HTTPClientLeft) {
        if bytes.isEmpty { return }
        let isSent = await withCheckedContinuation { continuation in
            if !mailbox.post(.chunk(token, bytes, continuation)) { continuation.resume(returning: false) }
        }
        if !isSent { throw HTTPClientLeft() }
    }
}

/// The client of a streamed body has closed the connection.
package struct HTTPClientLeft: Error, Equatable, Sendable {}

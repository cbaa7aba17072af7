/// Answers requests.
package protocol HTTPHandler: Sendable {
    /// Decides about a request whose head has arrived.
    ///
    /// Called on loop threads, for several connections at the same time. It must not block: work that waits belongs in
    /// ``HTTPReply/later(_:)``. The request is a view of the read buffer and ends with the call.
    func respond(to request: borrowing HTTPRequest) -> HTTPReply
}

/// A handler's decision about a request.
package enum HTTPReply {
    /// The response is known, and is sent in the same turn of the loop.
    case now(HTTPResponse)
    /// The response takes time: the closure runs in a task of its own, and the connection waits without a thread.
    ///
    /// The task is cancelled when the client leaves, and its result is then discarded. A client that has closed only its sending
    /// half (`printf … | nc`) still gets the response.
    case later(@Sendable () async -> HTTPResponse)
    /// The sink receives the body as it arrives, and then decides the reply itself.
    case receive(any HTTPBodySink)
}

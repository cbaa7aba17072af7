/// Receives a request's body while it arrives. All calls come from the connection's loop thread, in order.
package protocol HTTPBodySink: AnyObject {
    /// The maximum number of bytes. A longer body gets 413: before anything is read where `Content-Length` tells, else as soon
    /// as the count exceeds it.
    var limit: Int { get }

    /// Receives the next bytes of the body, which are valid during the call. Must not block for long.
    ///
    /// - Throws: ``HTTPBodyRefusal`` to respond at once without the rest; any other error becomes a 500.
    func write(_ bytes: UnsafeRawBufferPointer) throws

    /// Decides the reply to a complete body. The reply must not be ``HTTPReply/receive(_:)``.
    func finish() -> HTTPReply

    /// Discards an incomplete body: the client left, was too slow, sent too much or was refused. Called at most once, and never
    /// after ``finish()``.
    func abort()
}

/// Thrown by a sink that refuses a body before its end.
package struct HTTPBodyRefusal: Error, Sendable {
    /// The response, after which the connection is closed.
    package let response: HTTPResponse

    package init(_ response: HTTPResponse) {
        self.response = response
    }
}

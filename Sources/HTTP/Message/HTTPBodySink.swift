/// Where a request's body goes while it arrives. All calls come from the loop thread of the connection, in order.
package protocol HTTPBodySink: AnyObject {
    /// The most bytes the body may have. Beyond it the client gets 413: before anything is read where
    /// `Content-Length` tells, else as soon as the count passes it.
    var limit: Int { get }

    /// Takes the next bytes of the body, valid during the call only. It must not block for long.
    ///
    /// - Throws: ``HTTPBodyRefusal`` to answer at once without the rest; any other error becomes a 500.
    func write(_ bytes: UnsafeRawBufferPointer) throws

    /// The body is complete. ``HTTPReply/receive(_:)`` is no possible reply here.
    func finish() -> HTTPReply

    /// The body will not be complete: the client left, was too slow, sent too much or was refused. Called at most
    /// once, and never after ``finish()``.
    func abort()
}

/// Thrown by a sink that has seen enough of a body to refuse it.
package struct HTTPBodyRefusal: Error, Sendable {
    /// What the client gets; the connection is closed after it.
    package let response: HTTPResponse

    package init(_ response: HTTPResponse) {
        self.response = response
    }
}

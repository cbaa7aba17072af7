/// What answers requests.
package protocol HTTPHandler: Sendable {
    /// Decides what becomes of a request whose head has arrived whole.
    ///
    /// Called on a loop thread, for several connections at once on several threads. It must not block: anything that
    /// waits belongs in ``HTTPReply/later(_:)``. The request is a view of the read buffer and ends with the call.
    func respond(to request: borrowing HTTPRequest) -> HTTPReply
}

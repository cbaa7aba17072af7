/// What a handler makes of a request.
package enum HTTPReply {
    /// The answer is known: it is sent in the same turn of the loop.
    case now(HTTPResponse)
    /// The answer takes time: the connection is parked, no thread waits, and the closure runs in a task of its own.
    ///
    /// The task is cancelled when the client leaves; what it returns then is thrown away. A client that had already
    /// half-closed when its request was read (`printf … | nc`) still gets its answer.
    case later(@Sendable () async -> HTTPResponse)
    /// The body is wanted: the sink gets it as it arrives, and then decides the reply itself.
    case receive(any HTTPBodySink)
}

/// A request and its answer, from the complete head to the last byte sent: the plain numbers of it.
struct Exchange {
    /// When the head was complete, in nanoseconds of the loop's clock; 0 where no exchange is under way.
    var started: UInt64 = 0
    /// The id made for the request; 0 where the client's own is taken.
    var madeID: UInt64 = 0
    /// Status of the answer; 0 until there is one.
    var status = 0
    /// Bytes of the answer's head.
    var headBytes = 0
    /// Bytes of the answer the kernel has taken, its head included.
    var sentBytes = 0
    /// Whether the connection ends with this answer.
    var closes = false
    /// Whether the client understands interim answers: HTTP/1.0 has none (RFC 9110 section 15.2).
    var allowsInterim = false
    /// Whether the client waits for `100 Continue` and has not got it.
    var awaitsContinue = false

    /// Bytes of the answer's body sent so far.
    var bodyBytes: Int { max(0, sentBytes - headBytes) }
}

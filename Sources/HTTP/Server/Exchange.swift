/// A request and its answer, from the complete head to the last byte sent.
struct Exchange {
    /// When the head was complete, in nanoseconds of the loop's clock.
    var started: UInt64 = 0
    /// The id made for the request; 0 where the client's own is taken.
    var madeID: UInt64 = 0
    /// Status of the answer; 0 until there is one.
    var status = 0
    /// The answer's own fields.
    var headers = HTTPHeaders()
    /// Bytes of the answer's head.
    var headBytes = 0
    /// Bytes of the answer the kernel has taken, its head included.
    var sentBytes = 0
    /// Whether the connection ends with this answer.
    var closes = false
    /// Whether the client waits for `100 Continue` and has not got it.
    var awaitsContinue = false
    /// The request's head, kept while the answer is waited for.
    var keptHead: [UInt8] = []
    /// What the access log will say, kept where the answer is not sent in one go.
    var draft: AccessDraft?

    /// Bytes of the answer's body sent so far.
    var bodyBytes: Int { max(0, sentBytes - headBytes) }
}

/// How much a request head may hold.
struct HeadLimits: Sendable {
    /// Bytes of the request target.
    var target = 16 * 1024
    /// Bytes of the whole head.
    var head = 32 * 1024
    /// Header fields.
    var fields = 100
    /// Bytes of the method; the longest registered one has 17.
    var method = 24
}

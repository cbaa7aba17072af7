/// How a request's body is delimited (RFC 9112 section 6).
enum BodyFraming: Equatable, Sendable {
    case none
    /// `Content-Length` bytes, at least one.
    case sized(Int)
    case chunked
}

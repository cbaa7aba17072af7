/// The properties of a request on which the fields of its response depend.
struct ResponseTerms: Sendable, Equatable {
    /// Seconds of `max-age`, if the mount has its own.
    var maxAge: Int?
    /// The expiry of the signature, in seconds since 1970. No cache may store the response for longer.
    var expires: Int64?
    /// Whether the response depends on `Accept`.
    var varies = false

    /// The terms of most requests: no expiry, and no mount with terms of its own.
    static let plain = ResponseTerms()

    var isPlain: Bool { maxAge == nil && expires == nil && !varies }
}

extension ParsedTarget {
    var terms: ResponseTerms {
        ResponseTerms(maxAge: mount?.maxAge, expires: credentials?.expires, varies: isNegotiable)
    }
}

/// What of an answer's fields depends on how it was asked for.
struct AnswerTerms: Sendable, Equatable {
    /// Seconds of `max-age`, where a mount has its own.
    var maxAge: Int?
    /// Until when the request may be made, in seconds since 1970: nobody may keep the answer for longer.
    var expires: Int64?
    /// Whether the answer depends on `Accept`.
    var varies = false

    /// As most requests are: signed for ever or not at all, and not through a mount of other habits.
    static let plain = AnswerTerms()

    var isPlain: Bool { maxAge == nil && expires == nil && !varies }
}

extension ParsedTarget {
    var terms: AnswerTerms {
        AnswerTerms(maxAge: mount?.maxAge, expires: credentials?.expires, varies: isNegotiable)
    }
}

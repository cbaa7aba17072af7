internal import CCurl

/// What an origin gave to ask later whether a source has changed (RFC 9110 section 8.8).
package struct SourceValidators: Hashable, Sendable {
    /// The entity tag with its quotes, weak ones with `W/`.
    package let etag: String?
    /// The date, in the origin's own spelling.
    package let lastModified: String?

    /// Keeps what may be sent back. Anything that is not a well-formed entity tag or date is left out, so that nothing an
    /// origin sent can end a header field and begin another.
    package init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag.flatMap { Self.isEntityTag($0) ? $0 : nil }
        self.lastModified = lastModified.flatMap { Self.isDate($0) ? $0 : nil }
    }

    /// Whether there is nothing to ask with.
    package var isEmpty: Bool { etag == nil && lastModified == nil }

    private static let maxLength = 1024

    private static func isEntityTag(_ text: String) -> Bool {
        let opaque = text.hasPrefix("W/") ? text.utf8.dropFirst(2) : text.utf8[...]
        guard opaque.count >= 2, opaque.count <= maxLength, opaque.first == UInt8(ascii: "\""),
            opaque.last == UInt8(ascii: "\"")
        else { return false }
        return opaque.dropFirst().dropLast().allSatisfy { $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != 0x7f }
    }

    private static func isDate(_ text: String) -> Bool {
        text.utf8.count <= 64 && text.utf8.allSatisfy { (0x20...0x7e).contains($0) } && curl_getdate(text, nil) >= 0
    }
}

internal import CCurl
package import SystemIO

/// The result of a successful fetch.
package enum FetchOutcome: Sendable {
    /// The source's bytes.
    case fetched(FetchedSource)
    /// The source has not changed since the validators were received (304).
    case notModified(UnmodifiedSource)
}

/// A complete source that begins with the signature of a GIF. Its reader has to validate the rest.
package struct FetchedSource: Sendable {
    /// A sealed memory file: no process can change it.
    package let bytes: SharedDescriptor
    /// The size in bytes.
    package let count: Int
    /// The SHA-256 of the bytes: 32 bytes.
    package let sha256: [UInt8]
    /// The validators for the next conditional request.
    package let validators: SourceValidators
    package let cacheDirectives: CacheDirectives
    /// The URL of the bytes after all redirects.
    package let finalURL: SourceURL
    /// The time from the start of the first request to the end of the last response.
    package let duration: Duration
}

/// A response 304. Validators that the origin did not repeat keep their values.
package struct UnmodifiedSource: Sendable {
    package let validators: SourceValidators
    package let cacheDirectives: CacheDirectives
    /// The time from the start of the first request to the end of the last response.
    package let duration: Duration
}

/// The validators of an origin's response (RFC 9110 section 8.8), for conditional requests.
package struct SourceValidators: Hashable, Sendable {
    /// The entity tag with its quotes; weak ones with `W/`.
    package let etag: String?
    /// The date in the origin's own spelling.
    package let lastModified: String?

    /// Drops every value that is not a well-formed entity tag or date, so that no value from an origin can end a header field
    /// and begin another.
    package init(etag: String? = nil, lastModified: String? = nil) {
        self.etag = etag.flatMap { Self.isEntityTag($0) ? $0 : nil }
        self.lastModified = lastModified.flatMap { Self.isDate($0) ? $0 : nil }
    }

    /// Whether there is no validator, so that a request cannot be conditional.
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

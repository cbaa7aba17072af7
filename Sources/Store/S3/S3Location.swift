/// An object or a key prefix, in the form `s3://bucket/key`.
package struct S3Location: Sendable, Equatable {
    package let bucket: String
    /// The key, without a leading slash. It may be empty.
    package let key: String

    /// Reads `s3://bucket/key`. The key is used verbatim, without decoding.
    ///
    /// - Throws: ``StoreConfigurationError`` for other text, and for a key with a part that is empty, `.` or `..`, which
    ///   proxies and servers would resolve.
    package init(_ text: String) throws(StoreConfigurationError) {
        let scheme = "s3://"
        guard text.lowercased().hasPrefix(scheme) else { throw StoreConfigurationError("origin", "must begin with s3://") }
        let rest = text.dropFirst(scheme.count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        bucket = String(rest[..<slash])
        key = slash == rest.endIndex ? "" : String(rest[rest.index(after: slash)...])
        try Self.validate(key: key.hasSuffix("/") ? key.dropLast() : key[...], setting: "origin")
    }

    /// Checks a key or a prefix without a trailing slash.
    static func validate(key: Substring, setting: String, maxLength: Int = 512) throws(StoreConfigurationError) {
        guard key.utf8.count <= maxLength, !key.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw StoreConfigurationError(setting, "must have at most \(maxLength) bytes and no control characters")
        }
        let parts = key.split(separator: "/", omittingEmptySubsequences: false)
        guard key.isEmpty || parts.allSatisfy({ !["", ".", ".."].contains($0) }) else {
            throw StoreConfigurationError(setting, "must not contain empty parts, “.” or “..”")
        }
    }
}

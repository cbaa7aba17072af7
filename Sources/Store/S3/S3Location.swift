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

/// The keys of a store's objects: `{prefix}/{aa}/{id}.{extension}`, where `aa` are the id's first two digits, and beside an
/// object, if its record does not fit into metadata, `{the object's key}.record`.
struct KeySpace: Sendable, Equatable {
    /// The prefix of all keys: empty, or with a trailing slash.
    let prefix: String

    private static let recordSuffix = ".record"

    /// - Parameter prefix: The prefix without slashes at its ends; empty for none.
    /// - Throws: ``StoreConfigurationError`` for a prefix with empty parts, `.`, `..` or control characters.
    init(prefix: String) throws(StoreConfigurationError) {
        var trimmed = prefix[...]
        if trimmed.hasSuffix("/") { trimmed.removeLast() }
        try S3Location.validate(key: trimmed, setting: "prefix")
        self.prefix = trimmed.isEmpty ? "" : "\(trimmed)/"
    }

    func object(_ name: RenditionName) -> String { "\(prefix)\(name.description.prefix(2))/\(name)" }

    func record(_ name: RenditionName) -> String { object(name) + Self.recordSuffix }

    /// The common prefix of the keys of an id's renditions and their records.
    func objects(_ id: ObjectID) -> String { "\(prefix)\(id.description.prefix(2))/\(id)." }

    /// The rendition whose object, or whose record, has this key; nil if this store does not write such a key.
    func name(_ key: String) -> RenditionName? {
        guard key.hasPrefix(prefix) else { return nil }
        let parts = key.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let file = parts[1].hasSuffix(Self.recordSuffix) ? parts[1].dropLast(Self.recordSuffix.count) : parts[1]
        return RenditionName(file).flatMap { $0.description.prefix(2) == parts[0] ? $0 : nil }
    }
}

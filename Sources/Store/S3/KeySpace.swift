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

/// The name of a rendition in the shared store: its content id and its file extension.
package struct RenditionName: Hashable, Sendable, CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    package let id: String
    /// The extension without its dot, such as `mp4`.
    package let fileExtension: String

    /// - Parameters:
    ///   - id: 64 lower-case hexadecimal digits.
    ///   - fileExtension: One to eight of `a…z 0…9`.
    /// - Returns: Nil for other text.
    package init?(id: some StringProtocol, fileExtension: some StringProtocol) {
        guard Self.isID(id), (1...8).contains(fileExtension.utf8.count),
            fileExtension.utf8.allSatisfy({ Self.isDigit($0) || (0x61...0x7A).contains($0) })
        else { return nil }
        self.id = String(id)
        self.fileExtension = String(fileExtension)
    }

    /// Reads `{id}.{extension}`.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        self.init(id: parts[0], fileExtension: parts[1])
    }

    /// `{id}.{extension}`.
    package var description: String { "\(id).\(fileExtension)" }

    /// Whether a text is 64 lower-case hexadecimal digits.
    static func isID(_ id: some StringProtocol) -> Bool {
        id.utf8.count == 64 && id.utf8.allSatisfy { isDigit($0) || (0x61...0x66).contains($0) }
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
}

/// The keys of a store's objects: `{prefix}/{aa}/{id}.{extension}`, where `aa` are the id's first two digits, and beside an object,
/// if its record does not fit into metadata, `{the object's key}.record`.
struct KeySpace: Sendable, Equatable {
    /// What all keys begin with: empty, or a prefix with a slash at its end.
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

    func object(_ name: RenditionName) -> String { "\(prefix)\(name.id.prefix(2))/\(name)" }

    func record(_ name: RenditionName) -> String { object(name) + Self.recordSuffix }

    /// What the keys of an id's renditions and their records begin with.
    func objects(_ id: String) -> String { "\(prefix)\(id.prefix(2))/\(id)." }

    /// Whether a key is one that this store writes.
    func contains(_ key: String) -> Bool { name(key) != nil }

    /// The rendition whose object, or whose record, has this key; nil if this store does not write such a key.
    func name(_ key: String) -> RenditionName? {
        guard key.hasPrefix(prefix) else { return nil }
        let parts = key.dropFirst(prefix.count).split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return nil }
        let file = parts[1].hasSuffix(Self.recordSuffix) ? parts[1].dropLast(Self.recordSuffix.count) : parts[1]
        return RenditionName(file).flatMap { $0.id.prefix(2) == parts[0] ? $0 : nil }
    }
}

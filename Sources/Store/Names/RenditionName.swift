/// The name of a rendition, in the cache and in the shared store: its content id and its file's extension.
package struct RenditionName: Hashable, Sendable, CustomStringConvertible {
    package let id: ObjectID
    /// The extension without its dot, such as `mp4`.
    package let fileExtension: String

    init(_ record: ObjectRecord) {
        (id, fileExtension) = (record.id, record.fileExtension)
    }

    /// - Parameter fileExtension: One to eight of `a…z 0…9`; nil for other text.
    package init?(id: ObjectID, fileExtension: String) {
        guard ObjectRecord.isExtension(fileExtension) else { return nil }
        (self.id, self.fileExtension) = (id, fileExtension)
    }

    /// Reads `{id}.{extension}`.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let id = ObjectID(hex: parts[0]) else { return nil }
        self.init(id: id, fileExtension: String(parts[1]))
    }

    package var description: String { "\(id).\(fileExtension)" }
}

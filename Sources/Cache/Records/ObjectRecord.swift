/// What is known of a stored rendition beside its bytes.
package struct ObjectRecord: Sendable, Equatable {
    package let id: ObjectID
    /// The file's extension without its dot, such as `mp4`.
    package let fileExtension: String
    /// Bytes.
    package let length: Int64
    /// SHA-256 of the bytes.
    package let content: ContentDigest
    /// When it was published, in seconds since 1970; for `Last-Modified`.
    package let created: Int64
    /// A few bytes the publisher keeps with it, opaque to the cache: dimensions, durations.
    package let facts: [UInt8]

    /// Facts beyond this many bytes are refused: they are kept in memory, in the index and in the journal.
    package static let maxFactsCount = 16 * 1024

    /// Sizes and times beyond this, in bytes or seconds, are not real. Sums of them cannot overflow.
    static let maxNumber: Int64 = 1 << 53

    /// Whether the values may be trusted after they were read from the index or the journal.
    var isInRange: Bool {
        (1...Self.maxNumber).contains(length) && (-Self.maxNumber...Self.maxNumber).contains(created)
            && facts.count <= Self.maxFactsCount && Self.isExtension(fileExtension)
    }

    /// An extension is one to eight of `a…z 0…9`: it becomes part of a file's name.
    static func isExtension(_ text: String) -> Bool {
        (1...8).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) }
    }
}

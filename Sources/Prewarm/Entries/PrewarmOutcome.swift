/// What came of an entry.
package struct PrewarmOutcome: Sendable, Hashable, Codable {
    package enum Kind: String, Sendable, Hashable, Codable {
        /// It was in the cache.
        case hit
        /// It was made now.
        case new
        case failed
    }

    package var kind: Kind
    /// Bytes of the rendition; 0 where it failed.
    package var bytes = 0
    /// Bytes of its GIF; 0 where that is not known.
    package var sourceBytes = 0
    /// The code and the sentence of a failure (API.md §3).
    package var code: String?
    package var detail: String?

    package init(kind: Kind, bytes: Int = 0, sourceBytes: Int = 0) {
        self.kind = kind
        self.bytes = bytes
        self.sourceBytes = sourceBytes
    }

    package init(_ problem: Problem) {
        self.init(kind: .failed)
        code = problem.code
        detail = problem.detail
    }

    /// Bytes that the rendition is smaller than its GIF.
    package var saved: Int { max(0, sourceBytes - bytes) }

    private enum CodingKeys: String, CodingKey {
        case kind = "result"
        case bytes
        case sourceBytes = "source_bytes"
        case code
        case detail
    }
}

/// An outcome with what it belongs to.
package struct PrewarmResult: Sendable, Hashable, Codable {
    package var entry: PrewarmEntry
    package var outcome: PrewarmOutcome

    package init(_ entry: PrewarmEntry, _ outcome: PrewarmOutcome) {
        self.entry = entry
        self.outcome = outcome
    }

    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        entry = try fields.decode(PrewarmEntry.self, forKey: .entry)
        outcome = try PrewarmOutcome(from: decoder)
    }

    package func encode(to encoder: any Encoder) throws {
        var fields = encoder.container(keyedBy: CodingKeys.self)
        try fields.encode(entry, forKey: .entry)
        try outcome.encode(to: encoder)
    }

    private enum CodingKeys: String, CodingKey {
        case entry
    }
}

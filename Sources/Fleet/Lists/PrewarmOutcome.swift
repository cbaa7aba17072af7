package struct PrewarmOutcome: Sendable, Hashable, Codable {
    package enum Kind: String, Sendable, Hashable, Codable {
        /// The rendition was in the cache.
        case hit
        /// The rendition was encoded for this entry.
        case new
        case failed
    }

    package var kind: Kind
    /// Bytes of the rendition; 0 for a failure.
    package var bytes = 0
    /// Bytes of the source; 0 if unknown.
    package var sourceBytes = 0
    /// The code of a failure, a stable word for programs (docs/api.md, errors), and its sentence.
    package var code: String?
    package var detail: String?

    package init(kind: Kind, bytes: Int = 0, sourceBytes: Int = 0) {
        self.kind = kind
        self.bytes = bytes
        self.sourceBytes = sourceBytes
    }

    package init(code: String, detail: String) {
        kind = .failed
        (self.code, self.detail) = (code, detail)
    }

    /// The bytes by which the rendition is smaller than its source.
    package var saved: Int { max(0, sourceBytes - bytes) }

    /// Reads an outcome from the database or a server's report.
    ///
    /// - Throws: An error if a byte count is out of range and sums over outcomes could overflow.
    package init(from decoder: any Decoder) throws {
        let fields = try decoder.container(keyedBy: CodingKeys.self)
        kind = try fields.decode(Kind.self, forKey: .kind)
        bytes = try Self.byteCount(fields, .bytes)
        sourceBytes = try Self.byteCount(fields, .sourceBytes)
        code = try fields.decodeIfPresent(String.self, forKey: .code)
        detail = try fields.decodeIfPresent(String.self, forKey: .detail)
    }

    private static func byteCount(_ fields: KeyedDecodingContainer<CodingKeys>, _ key: CodingKeys) throws -> Int {
        let count = try fields.decode(Int.self, forKey: key)
        // Far above the size of any file. The sum of 2²³ such counts does not overflow an Int.
        guard (0...1 << 40).contains(count) else {
            throw DecodingError.dataCorruptedError(forKey: key, in: fields, debugDescription: "\(count) bytes")
        }
        return count
    }

    private enum CodingKeys: String, CodingKey {
        case kind = "result"
        case bytes
        case sourceBytes = "source_bytes"
        case code
        case detail
    }
}

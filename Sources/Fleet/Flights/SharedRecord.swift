/// A node's result for a rendition of a source, shared with all nodes.
package struct SharedRecord: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        /// The rendition's id as text, and its file's extension.
        case object(id: String, fileExtension: String)
        /// Why there is no rendition: a code, and details that only the caller interprets.
        case failure(code: String, details: [UInt8])
    }

    package var outcome: Outcome
    /// The origin's `ETag` and `Last-Modified` fields, verbatim.
    package var etag: String?
    package var lastModified: String?
    /// The time of the origin's response, in seconds since 1970.
    package var fetchedAt: Int64
    /// The freshness lifetime in seconds, if the origin gave one.
    package var freshFor: Int64?
    /// Whether the origin forbids using the response once it is stale.
    package var mustRevalidate: Bool
    /// The earliest time at which the work may have begun, in milliseconds of the cluster's clock. Set by the cluster.
    package internal(set) var began: Int64 = 0

    /// The largest plausible time in seconds. Sums of such times cannot overflow.
    private static let maxTime: Int64 = 1 << 53

    package init(
        outcome: Outcome, etag: String? = nil, lastModified: String? = nil, fetchedAt: Int64, freshFor: Int64? = nil,
        mustRevalidate: Bool = false
    ) {
        self.outcome = outcome
        self.etag = etag
        self.lastModified = lastModified
        self.fetchedAt = fetchedAt
        self.freshFor = freshFor
        self.mustRevalidate = mustRevalidate
    }

    /// The rendition's id; nil for a failure.
    var objectID: String? {
        if case .object(let id, _) = outcome { id } else { nil }
    }

    static let kind = UInt8(ascii: "R")

    /// The encoded record, as nodes exchange it.
    package var bytes: [UInt8] {
        let form: [any RedisArgument] =
            switch outcome {
            case .object(let id, let fileExtension): ["object", id, fileExtension]
            case .failure(let code, let details): ["failure", code, details]
            }
        let times: [any RedisArgument] = [
            FieldCoding.optional(etag), FieldCoding.optional(lastModified), fetchedAt,
            FieldCoding.optional(freshFor.map { String($0) }), mustRevalidate ? 1 : 0, began,
        ]
        return FieldCoding.encode(Self.kind, form + times)
    }

    /// Returns nil if the bytes are not a record or contain values out of range.
    package init?(_ bytes: [UInt8]) {
        guard var reader = FieldReader(bytes, kind: Self.kind), let form = reader.text(), let first = reader.text(),
            let second = reader.field()
        else { return nil }
        switch form {
        case "object":
            guard Self.isName(Array(first.utf8), limit: 128), Self.isName(second, limit: 8) else { return nil }
            outcome = .object(id: first, fileExtension: String(decoding: second, as: UTF8.self))
        case "failure": outcome = .failure(code: first, details: second)
        default: return nil
        }
        guard let etag = reader.optionalText(), let lastModified = reader.optionalText(), let fetchedAt = reader.number(),
            let freshFor = reader.optionalText(), let strictness = reader.number(),
            let began = reader.number(), reader.isAtEnd
        else { return nil }
        self.etag = etag
        self.lastModified = lastModified
        self.fetchedAt = fetchedAt
        mustRevalidate = strictness != 0
        if let freshFor {
            guard let seconds = Int64(freshFor) else { return nil }
            self.freshFor = seconds
        }
        self.began = began
        let range = -Self.maxTime...Self.maxTime
        guard range.contains(fetchedAt), range.contains(self.freshFor ?? 0) else { return nil }
    }

    /// Ids and extensions become parts of paths: `a…z 0…9` only.
    private static func isName(_ bytes: [UInt8], limit: Int) -> Bool {
        (1...limit).contains(bytes.count) && bytes.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) }
    }
}

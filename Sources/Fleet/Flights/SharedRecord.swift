package import Store

/// A node's result for a rendition of a source, shared with all nodes.
package struct SharedRecord: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        /// The rendition's id as text, and its file's extension.
        case object(id: String, fileExtension: String)
        /// Why there is no rendition: a code, and details that only the caller interprets.
        case failure(code: String, details: [UInt8])
    }

    package var outcome: Outcome
    package var validators: Validators
    /// The times of the origin's response, in seconds since 1970.
    package var times: OriginTimes
    /// The earliest time at which the work may have begun, in milliseconds of the cluster's clock. Set by the cluster.
    package internal(set) var began: Int64 = 0

    package init(outcome: Outcome, validators: Validators = Validators(), times: OriginTimes) {
        (self.outcome, self.validators, self.times) = (outcome, validators, times)
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
        let answer: [any RedisArgument] = [
            FieldCoding.optional(validators.etag), FieldCoding.optional(validators.lastModified), times.fetchedAt,
            FieldCoding.optional(times.freshFor.map { String($0) }), times.mustRevalidate ? 1 : 0, began,
        ]
        return FieldCoding.encode(Self.kind, form + answer)
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
        validators = Validators(etag: etag, lastModified: lastModified)
        times = OriginTimes(fetchedAt: fetchedAt, mustRevalidate: strictness != 0)
        if let freshFor {
            guard let seconds = Int64(freshFor) else { return nil }
            times.freshFor = seconds
        }
        self.began = began
        guard times.isInRange else { return nil }
    }

    /// Ids and extensions become parts of paths: `a…z 0…9` only.
    private static func isName(_ bytes: [UInt8], limit: Int) -> Bool {
        (1...limit).contains(bytes.count) && bytes.allSatisfy { (0x61...0x7a).contains($0) || (0x30...0x39).contains($0) }
    }
}

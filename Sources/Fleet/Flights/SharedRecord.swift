package import Store

/// A node's result for a rendition of a source, shared with all nodes.
package struct SharedRecord: Sendable, Equatable {
    package enum Outcome: Sendable, Equatable {
        case object(RenditionName)
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
    var objectID: ObjectID? {
        if case .object(let name) = outcome { name.id } else { nil }
    }

    static let kind = UInt8(ascii: "R")

    /// The encoded record, as nodes exchange it.
    package var bytes: [UInt8] {
        let form: [any RedisArgument] =
            switch outcome {
            case .object(let name): ["object", name.id.description, name.fileExtension]
            case .failure(let code, let details): ["failure", code, details]
            }
        let answer: [any RedisArgument] = [
            FieldCoding.optional(validators.etag), FieldCoding.optional(validators.lastModified), times.fetchedAt,
            FieldCoding.optional(times.freshFor.map { String($0) }), times.mustRevalidate ? 1 : 0, began,
            FieldCoding.optional(times.clientFreshFor.map { String($0) }),
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
            guard let id = ObjectID(hex: first),
                let name = RenditionName(id: id, fileExtension: String(decoding: second, as: UTF8.self))
            else { return nil }
            outcome = .object(name)
        case "failure": outcome = .failure(code: first, details: second)
        default: return nil
        }
        guard let etag = reader.optionalText(), let lastModified = reader.optionalText(), let fetchedAt = reader.number(),
            let freshFor = reader.optionalText(), let strictness = reader.number(),
            let began = reader.number(), let clientFreshFor = reader.optionalText(), reader.isAtEnd
        else { return nil }
        validators = Validators(etag: etag, lastModified: lastModified)
        times = OriginTimes(fetchedAt: fetchedAt, mustRevalidate: strictness != 0)
        for (text, lifetime) in [(freshFor, \OriginTimes.freshFor), (clientFreshFor, \.clientFreshFor)] {
            guard let text else { continue }
            guard let seconds = Int64(text) else { return nil }
            times[keyPath: lifetime] = seconds
        }
        self.began = began
        guard times.isInRange else { return nil }
    }
}

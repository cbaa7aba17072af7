internal import Digests
internal import SystemIO

/// The store's metadata of a rendition.
package struct StoredRecord: Sendable, Equatable {
    /// The number of bytes.
    package let length: Int
    /// SHA-256 of the bytes: 32 bytes.
    package let digest: [UInt8]
    /// The time of publication in seconds since 1970.
    package let created: Int64
    /// Bytes from the publisher, opaque to the store.
    package let facts: [UInt8]
    /// The earliest time at which its upload, or the request to its origin, may have begun, in milliseconds of the cluster's
    /// clock; 0 in a record of an older version.
    package let began: Int64

    /// The largest rendition, in bytes: 1 TiB. Sums of lengths cannot overflow.
    private static let maxLength = 1 << 40
    private static let maxTime: Int64 = 1 << 53

    /// - Returns: Nil for a value that is out of range.
    package init?(length: Int, digest: [UInt8], created: Int64, facts: [UInt8], began: Int64 = 0) {
        guard (1...Self.maxLength).contains(length), digest.count == 32, (-Self.maxTime...Self.maxTime).contains(created),
            facts.count <= ObjectRecord.maxFactsCount, (0...Self.maxTime).contains(began)
        else { return nil }
        self.length = length
        self.digest = digest
        self.created = created
        self.facts = facts
        self.began = began
    }

    /// Whether a purge that was accepted until a time covers the rendition.
    func began(until time: Int64) -> Bool {
        // Without `began`, compares the publication, which came later, by a clock that may differ.
        began > 0 ? began <= time : created * 1000 - Self.clockTolerance <= time
    }

    /// Milliseconds by which the clocks of nodes of older versions may differ.
    private static let clockTolerance: Int64 = 60_000
}

/// The record as names and values of printable ASCII: the metadata of an object, and the lines of a file.
///
/// `gifreel-check` is a SHA-256 over the other fields, which detects a truncated or mixed-up record.
extension StoredRecord {
    private static let format = "1"

    /// The largest metadata in bytes: S3 allows 2 KB for all names and values, and some servers count `x-amz-meta-` as well.
    private static let maxMetadataLength = 1600

    /// Names in lower case.
    var fields: [String: String] {
        var fields = [
            "gifreel-format": Self.format,
            "gifreel-length": String(length),
            "gifreel-sha256": Hex.encode(digest),
            "gifreel-created": String(created),
            "gifreel-facts": Hex.encode(facts),
        ]
        // Nodes of older versions check only the fields above.
        fields["gifreel-check"] = Self.check(fields)
        if began > 0 { fields["gifreel-began"] = String(began) }
        return fields
    }

    var fitsMetadata: Bool {
        fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count } <= Self.maxMetadataLength
    }

    /// Reads a record from ``fields`` and ignores other fields; nil if a field is missing, out of range or damaged.
    init?(fields: [String: String]) {
        let names = ["gifreel-format", "gifreel-length", "gifreel-sha256", "gifreel-created", "gifreel-facts"]
        let known = fields.filter { names.contains($0.key) }
        guard known.count == names.count, known["gifreel-format"] == Self.format,
            fields["gifreel-check"] == Self.check(known),
            let length = known["gifreel-length"].flatMap({ Int($0) }),
            let digest = known["gifreel-sha256"].flatMap({ Hex.decode($0.utf8) }),
            let created = known["gifreel-created"].flatMap({ Int64($0) }),
            let facts = known["gifreel-facts"].flatMap({ Hex.decode($0.utf8) })
        else { return nil }
        let began = fields["gifreel-began"].flatMap { Int64($0) } ?? 0
        self.init(length: length, digest: digest, created: created, facts: facts, began: max(0, began))
    }

    /// Whether the fields claim to be a record, damaged or not.
    static func isPresent(in fields: [String: String]) -> Bool { fields["gifreel-format"] != nil }

    private static func check(_ fields: [String: String]) -> String {
        let text = fields.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)\n" }.joined()
        return Hex.encode(SHA256.hash(text.utf8).prefix(16))
    }
}

/// Names and values as lines of text, `name: value`.
enum FieldLines {
    static func encode(_ fields: [String: String]) -> [UInt8] {
        Array(fields.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)\n" }.joined().utf8)
    }

    /// Lines without a colon are skipped.
    static func decode(_ bytes: [UInt8]) -> [String: String] {
        var fields: [String: String] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[String(line[..<colon])] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        return fields
    }
}

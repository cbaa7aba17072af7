internal import SystemIO

/// A change of the cache.
enum JournalEntry: Sendable, Equatable {
    /// A rendition's file was stored.
    case object(ObjectRecord)
    /// An alias was added, renewed, or leads to another object now.
    case alias(AliasRecord, ObjectID)
    /// An alias of this URL led to an object that is still stored. Only a rewritten journal has such lines: otherwise the lines of
    /// the alias record it.
    case formerAlias(url: String, ObjectID)
    /// A client uploaded the source of a stored object, so a purge of a URL with the same bytes leaves the object.
    case upload(ObjectID)
    /// Earlier lines that the purge covers no longer count.
    case purge(PurgeScope)
}

/// An entry with its position in the order of all entries.
struct JournalLine: Sendable, Equatable {
    /// Increases from line to line, even across rewrites of the journal.
    let sequence: Int64
    let entry: JournalEntry
}

/// A line of the journal as text:
///
///     checksum ⇥ kind ⇥ sequence ⇥ field ⇥ … ⏎
///
///     O  id  extension  length  sha256  created  facts
///     A  key  object  fetched-at  fresh-for  etag  last-modified  url
///     F  object  url
///     U  object
///     P  url|prefix|object|all  text
///     J  identity                                     (the first line; its sequence is the file's base)
///
/// The checksum is the first 16 digits of the SHA-256 of everything after its tab. In fields, a backslash, a control character or
/// DEL is written `\xx`, so that a line break always ends a line and a damaged line affects no other. An optional field is empty
/// if it has no value, and otherwise begins with `=`.
enum JournalText {
    private static let tab = UInt8(ascii: "\t")
    private static let lineBreak = UInt8(ascii: "\n")
    private static let backslash = UInt8(ascii: "\\")
    private static let checksumCount = 16
    /// The sum of a sequence and the length of a file cannot overflow.
    private static let maxSequence: Int64 = 1 << 62

    // MARK: Writing

    static func line(_ line: JournalLine) -> [UInt8] {
        switch line.entry {
        case .object(let record):
            return compose(
                "O", line.sequence,
                [
                    Array(record.id.description.utf8), Array(record.fileExtension.utf8), Array(String(record.length).utf8),
                    Array(record.content.description.utf8), Array(String(record.created).utf8), record.facts,
                ])
        case .alias(let record, let object):
            return compose(
                "A", line.sequence,
                [
                    Array(record.key.description.utf8), Array(object.description.utf8), Array(String(record.fetchedAt).utf8),
                    optional(record.freshFor.map { String($0) }), optional(record.validators.etag),
                    optional(record.validators.lastModified), Array(record.sourceURL.utf8),
                ])
        case .formerAlias(let url, let object):
            return compose("F", line.sequence, [Array(object.description.utf8), Array(url.utf8)])
        case .upload(let object):
            return compose("U", line.sequence, [Array(object.description.utf8)])
        case .purge(let scope):
            return switch scope {
            case .all: compose("P", line.sequence, [Array("all".utf8), []])
            case .url(let url): compose("P", line.sequence, [Array("url".utf8), Array(url.utf8)])
            case .prefix(let prefix): compose("P", line.sequence, [Array("prefix".utf8), Array(prefix.utf8)])
            case .object(let id): compose("P", line.sequence, [Array("object".utf8), Array(id.description.utf8)])
            }
        }
    }

    static func header(identity: String, base: Int64) -> [UInt8] {
        compose("J", base, [Array(identity.utf8)])
    }

    private static func optional(_ text: String?) -> [UInt8] {
        text.map { Array("=\($0)".utf8) } ?? []
    }

    private static func compose(_ kind: String, _ sequence: Int64, _ fields: [[UInt8]]) -> [UInt8] {
        var body = Array("\(kind)\t\(sequence)".utf8)
        for field in fields {
            body.append(tab)
            for byte in field {
                if byte < 0x20 || byte == 0x7f || byte == backslash {
                    body.append(backslash)
                    body.append(contentsOf: Hex.encode([byte]).utf8)
                } else {
                    body.append(byte)
                }
            }
        }
        return checksum(of: body[...]) + [tab] + body + [lineBreak]
    }

    // MARK: Reading

    /// Parses a line without its line break. Nil if it is damaged, of an unknown kind, or has values out of range.
    static func parse(_ bytes: ArraySlice<UInt8>) -> JournalLine? {
        guard let (kind, sequence, fields) = fields(of: bytes), let entry = entry(kind, fields) else { return nil }
        return JournalLine(sequence: sequence, entry: entry)
    }

    static func parseHeader(_ bytes: ArraySlice<UInt8>) -> (identity: String, base: Int64)? {
        guard let (kind, base, fields) = fields(of: bytes), kind == UInt8(ascii: "J"), fields.count == 1 else { return nil }
        return text(fields[0]).map { ($0, base) }
    }

    private typealias Field = ArraySlice<UInt8>

    private static func entry(_ kind: UInt8, _ fields: [Field]) -> JournalEntry? {
        switch (kind, fields.count) {
        case (UInt8(ascii: "O"), 6):
            guard let id: ObjectID = name(fields[0]), let fileExtension = text(fields[1]),
                ObjectRecord.isExtension(fileExtension),
                let length = number(fields[2]), let content: ContentDigest = name(fields[3]), let created = number(fields[4]),
                let facts = unescape(fields[5])
            else { return nil }
            let record = ObjectRecord(
                id: id, fileExtension: fileExtension, length: length, content: content, created: created, facts: Array(facts))
            return record.isInRange ? .object(record) : nil
        case (UInt8(ascii: "A"), 7):
            guard let key: AliasKey = name(fields[0]), let object: ObjectID = name(fields[1]),
                let fetchedAt = number(fields[2]),
                let url = text(fields[6])
            else { return nil }
            let validators = Validators(etag: optional(fields[4]), lastModified: optional(fields[5]))
            let freshFor = fields[3].isEmpty ? nil : number(fields[3].dropFirst())
            let record = AliasRecord(
                key: key, sourceURL: url, validators: validators, fetchedAt: fetchedAt, freshFor: freshFor)
            return record.isInRange ? .alias(record, object) : nil
        case (UInt8(ascii: "F"), 2):
            guard let object: ObjectID = name(fields[0]), let url = text(fields[1]) else { return nil }
            return .formerAlias(url: url, object)
        case (UInt8(ascii: "U"), 1):
            guard let object: ObjectID = name(fields[0]) else { return nil }
            return .upload(object)
        case (UInt8(ascii: "P"), 2):
            guard let kind = text(fields[0]), let covered = text(fields[1]) else { return nil }
            return switch kind {
            case "all": .purge(.all)
            case "url": .purge(.url(covered))
            case "prefix": .purge(.prefix(covered))
            case "object": ObjectID(hex: covered).map { JournalEntry.purge(.object($0)) }
            default: nil
            }
        default:
            return nil
        }
    }

    /// Splits a line; nil if its checksum is wrong.
    private static func fields(of bytes: Field) -> (kind: UInt8, sequence: Int64, fields: [Field])? {
        guard bytes.count > checksumCount, bytes[bytes.startIndex + checksumCount] == tab else { return nil }
        let body = bytes.dropFirst(checksumCount + 1)
        guard bytes.prefix(checksumCount).elementsEqual(checksum(of: body)) else { return nil }
        let parts = body.split(separator: tab, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[0].count == 1, let kind = parts[0].first, let sequence = number(parts[1]),
            (0...maxSequence).contains(sequence)
        else {
            return nil
        }
        return (kind, sequence, Array(parts.dropFirst(2)))
    }

    private static func name<Name: DigestName>(_ field: Field) -> Name? {
        Hex.decode(field).flatMap { Name(bytes: $0) }
    }

    /// A decimal number without plus sign and blanks.
    private static func number(_ field: Field) -> Int64? {
        let isNegative = field.first == UInt8(ascii: "-")
        let digits = isNegative ? field.dropFirst() : field
        guard !digits.isEmpty else { return nil }
        var value: Int64 = 0
        for digit in digits {
            guard (0x30...0x39).contains(digit) else { return nil }
            let (tens, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            let (sum, isMuchTooLarge) = tens.subtractingReportingOverflow(Int64(digit - 0x30))
            guard !isTooLarge, !isMuchTooLarge else { return nil }
            // Downwards: there is one more number below zero than above.
            value = sum
        }
        guard !isNegative else { return value }
        return value == .min ? nil : -value
    }

    private static func text(_ field: Field) -> String? {
        unescape(field).map { String(decoding: $0, as: UTF8.self) }
    }

    private static func optional(_ field: Field) -> String? {
        field.isEmpty ? nil : text(field.dropFirst())
    }

    private static func unescape(_ field: Field) -> Field? {
        guard field.contains(backslash) else { return field }
        var result: [UInt8] = []
        var rest = field
        while let byte = rest.popFirst() {
            if byte != backslash {
                result.append(byte)
            } else {
                guard rest.count >= 2, let escaped = Hex.decode(rest.prefix(2)) else { return nil }
                result += escaped
                rest = rest.dropFirst(2)
            }
        }
        return result[...]
    }

    private static func checksum(of body: Field) -> [UInt8] {
        let digest = body.withUnsafeBytes { SourceDigest(of: $0) }
        return Array(Hex.encode(digest.bytes.prefix(checksumCount / 2)).utf8)
    }
}

/// A line of the journal as text:
///
///     checksum ⇥ kind ⇥ sequence ⇥ field ⇥ … ⏎
///
///     O  id  extension  length  sha256  created  facts
///     A  key  object  fetched-at  fresh-for  etag  last-modified  url
///     F  object  url
///     P  url|prefix|all  text
///     J  identity                                     (the first line; its sequence is the file's base)
///
/// The checksum is the first 16 digits of the SHA-256 of what follows its tab. In fields a backslash, a control character or DEL
/// is written `\xx`, so that a line break always ends a line and a damaged line costs no other. An optional field is empty when
/// it has no value, else it begins with `=`.
enum JournalText {
    private static let tab = UInt8(ascii: "\t")
    private static let lineBreak = UInt8(ascii: "\n")
    private static let backslash = UInt8(ascii: "\\")
    private static let checksumCount = 16

    // MARK: Writing

    static func line(_ line: JournalLine) -> [UInt8] {
        switch line.entry {
        case .object(let record):
            return text(
                "O", line.sequence,
                [
                    Array(record.id.description.utf8), Array(record.fileExtension.utf8), Array(String(record.length).utf8),
                    Array(record.content.description.utf8), Array(String(record.created).utf8), record.facts,
                ])
        case .alias(let record, let object):
            return text(
                "A", line.sequence,
                [
                    Array(record.key.description.utf8), Array(object.description.utf8), Array(String(record.fetchedAt).utf8),
                    optional(record.freshFor.map { String($0) }), optional(record.validators.etag),
                    optional(record.validators.lastModified), Array(record.sourceURL.utf8),
                ])
        case .formerAlias(let url, let object):
            return text("F", line.sequence, [Array(object.description.utf8), Array(url.utf8)])
        case .purge(let scope):
            return switch scope {
            case .all: text("P", line.sequence, [Array("all".utf8), []])
            case .url(let url): text("P", line.sequence, [Array("url".utf8), Array(url.utf8)])
            case .prefix(let prefix): text("P", line.sequence, [Array("prefix".utf8), Array(prefix.utf8)])
            }
        }
    }

    static func header(identity: String, base: Int64) -> [UInt8] {
        text("J", base, [Array(identity.utf8)])
    }

    private static func optional(_ text: String?) -> [UInt8] {
        text.map { Array("=\($0)".utf8) } ?? []
    }

    private static func text(_ kind: String, _ sequence: Int64, _ fields: [[UInt8]]) -> [UInt8] {
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

    /// The line in `bytes`, which is without its line break; nil where it is damaged or of a kind not known.
    static func parse(_ bytes: ArraySlice<UInt8>) -> JournalLine? {
        guard let (kind, sequence, fields) = fields(of: bytes) else { return nil }
        switch (kind, fields.count) {
        case ("O", 6):
            guard let id = ObjectID(hex: text(fields[0])), ObjectRecord.isExtension(text(fields[1])),
                let length = Int64(text(fields[2])), let content = ContentDigest(hex: text(fields[3])),
                let created = Int64(text(fields[4]))
            else { return nil }
            let record = ObjectRecord(
                id: id, fileExtension: text(fields[1]), length: length, content: content, created: created,
                facts: fields[5])
            return JournalLine(sequence: sequence, entry: .object(record))
        case ("A", 7):
            guard let key = AliasKey(hex: text(fields[0])), let object = ObjectID(hex: text(fields[1])),
                let fetchedAt = Int64(text(fields[2]))
            else { return nil }
            let record = AliasRecord(
                key: key, sourceURL: text(fields[6]),
                validators: Validators(etag: optional(fields[4]), lastModified: optional(fields[5])),
                fetchedAt: fetchedAt, freshFor: optional(fields[3]).flatMap { Int64($0) })
            return JournalLine(sequence: sequence, entry: .alias(record, object))
        case ("F", 2):
            guard let object = ObjectID(hex: text(fields[0])) else { return nil }
            return JournalLine(sequence: sequence, entry: .formerAlias(url: text(fields[1]), object))
        case ("P", 2):
            switch text(fields[0]) {
            case "all": return JournalLine(sequence: sequence, entry: .purge(.all))
            case "url": return JournalLine(sequence: sequence, entry: .purge(.url(text(fields[1]))))
            case "prefix": return JournalLine(sequence: sequence, entry: .purge(.prefix(text(fields[1]))))
            default: return nil
            }
        default:
            return nil
        }
    }

    static func parseHeader(_ bytes: ArraySlice<UInt8>) -> (identity: String, base: Int64)? {
        guard let (kind, base, fields) = fields(of: bytes), kind == "J", fields.count == 1 else { return nil }
        return (text(fields[0]), base)
    }

    private static func fields(of bytes: ArraySlice<UInt8>) -> (kind: String, sequence: Int64, fields: [[UInt8]])? {
        guard bytes.count > checksumCount, bytes[bytes.startIndex + checksumCount] == tab else { return nil }
        let body = bytes.dropFirst(checksumCount + 1)
        guard bytes.prefix(checksumCount).elementsEqual(checksum(of: body)) else { return nil }
        let parts = body.split(separator: tab, omittingEmptySubsequences: false)
        guard parts.count >= 2, let sequence = Int64(text(Array(parts[1]))) else { return nil }
        var fields: [[UInt8]] = []
        for part in parts.dropFirst(2) {
            guard let field = unescape(part) else { return nil }
            fields.append(field)
        }
        return (text(Array(parts[0])), sequence, fields)
    }

    private static func unescape(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        guard bytes.contains(backslash) else { return Array(bytes) }
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            if byte != backslash {
                result.append(byte)
            } else {
                guard rest.count >= 2, let escaped = Hex.decode(rest.prefix(2)) else { return nil }
                result += escaped
                rest = rest.dropFirst(2)
            }
        }
        return result
    }

    private static func text(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self)
    }

    private static func optional(_ field: [UInt8]) -> String? {
        field.isEmpty ? nil : text(Array(field.dropFirst()))
    }

    private static func checksum(of body: ArraySlice<UInt8>) -> [UInt8] {
        let digest = body.withUnsafeBytes { SourceDigest(of: $0) }
        return Array(Hex.encode(digest.bytes.prefix(checksumCount / 2)).utf8)
    }
}

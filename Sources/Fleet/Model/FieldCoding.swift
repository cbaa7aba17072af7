/// A list of length-prefixed byte strings, the format of key values and message payloads.
enum FieldCoding {
    /// - Parameter kind: The first byte, which distinguishes kinds of values.
    static func encode(_ kind: UInt8, _ fields: [any RedisArgument]) -> [UInt8] {
        fields.map(\.argument).reduce(into: [kind]) { bytes, field in
            let count = UInt32(clamping: field.count)
            for shift: UInt32 in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: count >> shift)) }
            bytes += field.prefix(Int(count))
        }
    }

    /// An optional field: empty for nil, otherwise prefixed by a byte that distinguishes it from an empty text.
    static func optional(_ text: String?) -> [UInt8] { text.map { [1] + Array($0.utf8) } ?? [] }
}

/// Decodes what ``FieldCoding`` encoded. Every length is checked against the bytes that are left.
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    /// - Returns: Nil if the bytes do not begin with `kind`.
    init?(_ bytes: [UInt8], kind: UInt8) {
        guard bytes.first == kind else { return nil }
        rest = bytes.dropFirst()
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func field() -> [UInt8]? {
        guard rest.count >= 4 else { return nil }
        let count = rest.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(4)
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func text() -> String? {
        field().flatMap { String(validating: $0, as: UTF8.self) }
    }

    mutating func number() -> Int64? {
        text().flatMap { Int64($0) }
    }

    /// The outer optional is nil for a malformed field, the inner one for a field without a text.
    mutating func optionalText() -> String?? {
        guard let field = field() else { return nil }
        if field.isEmpty { return .some(nil) }
        guard field[0] == 1, let text = String(validating: field.dropFirst(), as: UTF8.self) else { return nil }
        return text
    }
}

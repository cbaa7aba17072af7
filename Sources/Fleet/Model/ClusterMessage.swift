enum ClusterMessage: Equatable {
    /// A flight has ended: its key and the record's bytes, which are empty if the lease was released without a result.
    case flight(key: String, value: [UInt8])
    /// A source fails, for all its renditions: its URL and the record's bytes.
    case failure(sourceURL: String, record: [UInt8])
    /// A node has applied the purge with this id.
    case acknowledged(StreamID)
    case prewarm
    /// The node with this name has listed itself as live.
    case registered(String)
    /// The node with this name has left, or its process has ended and another one uses its disk.
    case left(String)

    private static let kind = UInt8(ascii: "E")

    var bytes: [UInt8] {
        switch self {
        case .flight(let key, let value): FieldCoding.encode(Self.kind, ["flight", key, value])
        case .failure(let sourceURL, let record): FieldCoding.encode(Self.kind, ["failure", sourceURL, record])
        case .acknowledged(let id): FieldCoding.encode(Self.kind, ["purge", id.description])
        case .prewarm: FieldCoding.encode(Self.kind, ["prewarm"])
        case .registered(let node): FieldCoding.encode(Self.kind, ["node", node])
        case .left(let node): FieldCoding.encode(Self.kind, ["left", node])
        }
    }

    init?(_ bytes: [UInt8]) {
        guard var reader = FieldReader(bytes, kind: Self.kind) else { return nil }
        switch reader.text() {
        case "flight":
            guard let key = reader.text(), let value = reader.field() else { return nil }
            self = .flight(key: key, value: value)
        case "failure":
            guard let sourceURL = reader.text(), let record = reader.field() else { return nil }
            self = .failure(sourceURL: sourceURL, record: record)
        case "purge":
            guard let id = reader.text().flatMap({ StreamID($0) }) else { return nil }
            self = .acknowledged(id)
        case "prewarm": self = .prewarm
        case "node":
            guard let node = reader.text() else { return nil }
            self = .registered(node)
        case "left":
            guard let node = reader.text() else { return nil }
            self = .left(node)
        default: return nil
        }
    }
}

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

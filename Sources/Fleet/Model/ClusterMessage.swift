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

    private static let kind = UInt8(ascii: "E")

    var bytes: [UInt8] {
        switch self {
        case .flight(let key, let value): FieldCoding.encode(Self.kind, ["flight", key, value])
        case .failure(let sourceURL, let record): FieldCoding.encode(Self.kind, ["failure", sourceURL, record])
        case .acknowledged(let id): FieldCoding.encode(Self.kind, ["purge", id.description])
        case .prewarm: FieldCoding.encode(Self.kind, ["prewarm"])
        case .registered(let node): FieldCoding.encode(Self.kind, ["node", node])
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
        default: return nil
        }
    }
}

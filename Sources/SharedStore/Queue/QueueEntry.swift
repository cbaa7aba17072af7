internal import Digests
internal import SystemIO

/// A write that waits in the queue.
struct QueueEntry: Sendable, Equatable {
    enum Change: Sendable, Equatable {
        case put(StoredRecord, mediaType: String)
        case delete
    }

    /// The order of entries, and the name of their files.
    let sequence: UInt64
    let name: RenditionName
    let change: Change

    /// The bytes that the entry keeps on disk.
    var length: Int {
        if case .put(let record, _) = change { record.length } else { 0 }
    }

    /// The file's content.
    var encoded: [UInt8] {
        var fields = ["name": name.description]
        switch change {
        case .delete: fields["change"] = "delete"
        case .put(let record, let mediaType):
            fields["change"] = "put"
            fields["media-type"] = mediaType
            fields.merge(record.fields) { own, _ in own }
        }
        let bytes = FieldLines.encode(fields)
        return bytes + Array("end: \(Hex.encode(SHA256.hash(bytes)))\n".utf8)
    }

    init(sequence: UInt64, name: RenditionName, change: Change) {
        self.sequence = sequence
        self.name = name
        self.change = change
    }

    /// Reads ``encoded``; nil if it is damaged.
    init?(sequence: UInt64, encoded: [UInt8]) {
        // The last line is `end: ` with 64 digits and a line feed.
        let body = encoded.dropLast(70)
        guard encoded.suffix(70).elementsEqual("end: \(Hex.encode(SHA256.hash(body)))\n".utf8) else { return nil }
        let fields = FieldLines.decode(Array(body))
        guard let name = fields["name"].flatMap({ RenditionName($0) }) else { return nil }
        switch fields["change"] {
        case "delete": self.init(sequence: sequence, name: name, change: .delete)
        case "put":
            guard let record = StoredRecord(fields: fields), let mediaType = fields["media-type"] else { return nil }
            self.init(sequence: sequence, name: name, change: .put(record, mediaType: mediaType))
        default: return nil
        }
    }
}

struct ObjectRow: Sendable, Equatable {
    /// Its position in the eviction queue.
    let sequence: Int64
    let record: ObjectRecord
    /// The sequence of its latest upload and when that began; zero if it was not uploaded. A purge of a source does not remove
    /// an upload.
    var upload = Upload()

    struct Upload: Sendable, Equatable {
        var sequence: Int64 = 0
        var began: Int64 = 0
    }
}

struct AliasRow: Sendable, Equatable {
    let sequence: Int64
    let record: AliasRecord
    /// When the request to the origin began, in milliseconds of the cluster's clock.
    let began: Int64
    let object: ObjectRow
}

/// The sequences of an alias and of its object.
typealias AliasReference = (sequence: Int64, object: Int64)

struct CacheTotals: Sendable, Equatable {
    var objects: Int64 = 0
    var bytes: Int64 = 0
    var objectSpace: Int64 = 0
    var aliases: Int64 = 0
    var aliasSpace: Int64 = 0

    /// The disk space that counts towards ``CacheConfiguration/maxBytes``.
    var space: Int64 { objectSpace + aliasSpace }
}

/// The cache's state in the ledger, besides objects and aliases.
struct CacheState: Sendable, Equatable {
    var sequence: Int64
    let revalidated: Int64
    let hand: Int64
    let isClean: Bool
    var totals: CacheTotals
    let unconfirmed: Int64
}

extension ObjectRecord {
    /// The disk space of the object: the blocks of its file, an inode and its row.
    var space: Int64 { (length + 4095) / 4096 * 4096 + 512 + Int64(facts.count) }
}

extension AliasRecord {
    /// The alias's size on disk: its row and its entries in three indexes. One of the indexes contains the URL again.
    var space: Int64 {
        let texts = 2 * sourceURL.utf8.count + (validators.etag?.utf8.count ?? 0) + (validators.lastModified?.utf8.count ?? 0)
        return Int64(texts + rendition.utf8.count) + 192
    }
}

// MARK: - Conversion of columns to values

// A damaged database may hold anything in any column, so the type and the range of each value are checked. A wrong value throws
// an error of damage.

extension ObjectRow {
    /// The columns that ``init(_:from:)`` expects, in their order.
    static let columns = columnList(
        "objects", ["sequence", "id", "extension", "length", "content", "created", "facts", "upload", "upload_began"])

    /// Reads an object from nine columns, starting at `first`.
    init(_ row: SQLiteRow, from first: Int = 0) throws {
        let record = ObjectRecord(
            id: try row.digest(first + 1), fileExtension: try row.value(first + 2),
            length: try row.number(first + 3, in: 1...ObjectRecord.maxNumber),
            content: try row.digest(first + 4), created: try row.number(first + 5),
            facts: try row.value(first + 6))
        guard record.facts.count <= ObjectRecord.maxFactsCount, ObjectRecord.isExtension(record.fileExtension) else {
            throw LedgerError(.damage, "an object has values out of range")
        }
        let upload = Upload(sequence: try row.sequence(first + 7), began: try row.value(first + 8))
        self.init(sequence: try row.sequence(first), record: record, upload: upload)
    }
}

extension AliasRow {
    /// The columns that ``init(_:)`` expects, in their order.
    static let columns =
        columnList(
            "aliases",
            ["sequence", "key", "url", "etag", "modified", "fetched", "fresh", "strict", "rendition", "began", "client_fresh"])
        + ", "
        + ObjectRow.columns

    /// Reads an alias from eleven columns, followed by its object.
    init(_ row: SQLiteRow) throws {
        let record = AliasRecord(
            key: try row.digest(1), sourceURL: try row.value(2), rendition: try row.value(8),
            validators: Validators(etag: try row.value(3), lastModified: try row.value(4)),
            times: OriginTimes(
                fetchedAt: try row.value(5), freshFor: try row.value(6), clientFreshFor: try row.value(10),
                mustRevalidate: try row.value(7)))
        guard record.times.isInRange else { throw LedgerError(.damage, "an alias has values out of range") }
        self.init(
            sequence: try row.sequence(0), record: record, began: try row.value(9), object: try ObjectRow(row, from: 11))
    }
}

extension SQLiteRow {
    func digest<Name: DigestName>(_ column: Int) throws -> Name {
        guard let name = Name(bytes: try value(column) as [UInt8]) else {
            throw LedgerError(.damage, "a digest has the wrong length")
        }
        return name
    }
}

private func columnList(_ table: String, _ names: [String]) -> String {
    names.map { "\(table).\($0)" }.joined(separator: ", ")
}

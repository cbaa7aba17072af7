internal import Foundation
internal import GRDB

/// Between the tables' columns and the cache's values.
extension Index {
    static let objectColumns = "objects.sequence, objects.id, objects.extension, objects.length, objects.content, objects.created, objects.facts"
    static let aliasColumns = "aliases.sequence, aliases.key, aliases.url, aliases.etag, aliases.modified, aliases.fetched, aliases.fresh"

    /// The object in seven columns from `first` on, as ``objectColumns`` orders them.
    static func object(_ row: Row, from first: Int = 0) throws -> ObjectRow {
        guard let id = ObjectID(bytes: row[first + 1] as Data), let content = ContentDigest(bytes: row[first + 4] as Data) else {
            throw IndexError(broken: "a digest of the wrong length")
        }
        return ObjectRow(
            sequence: row[first],
            record: ObjectRecord(
                id: id, fileExtension: row[first + 2], length: row[first + 3], content: content, created: row[first + 5],
                facts: [UInt8](row[first + 6] as Data)))
    }

    /// The alias in seven columns, followed by its object.
    static func alias(_ row: Row) throws -> AliasRow {
        guard let key = AliasKey(bytes: row[1] as Data) else { throw IndexError(broken: "a digest of the wrong length") }
        return AliasRow(
            sequence: row[0],
            record: AliasRecord(
                key: key, sourceURL: row[2], validators: Validators(etag: row[3], lastModified: row[4]), fetchedAt: row[5],
                freshFor: row[6]),
            object: try object(row, from: 7))
    }
}

extension DigestName {
    var data: Data { Data(bytes) }
}

/// The queries for what purges cover.
extension CacheTables {
    /// The position at which the search for a purge's rows stopped.
    struct SweepPosition: Sendable {
        let sequence: Int64
        /// The number of the range of rows; see ``covered(by:_:limit:)``.
        fileprivate var range = 0
        /// The last row of that range.
        fileprivate var url = ""
        fileprivate var row: Int64 = 0
        /// Whether all rows were compared.
        fileprivate(set) var hasEnded = false

        init(sequence: Int64) {
            self.sequence = sequence
        }

        fileprivate mutating func next(ofRanges count: Int) {
            range += 1
            (url, row) = ("", 0)
            hasEnded = range >= count
        }
    }

    /// Returns the next aliases that a purge covers, and the next objects that are no longer live. Compares a bounded number of
    /// rows and advances the position.
    func covered(
        by row: PurgeTable.Row, _ position: inout SweepPosition, limit: Int
    ) throws -> (aliases: [AliasReference], objects: [ObjectRow]) {
        var aliases: [AliasReference] = []
        func compare(_ condition: String, _ arguments: [any SQLiteValue], ranges: Int) throws {
            var count = 0
            try database.forEach(
                "SELECT sequence, object, url, began FROM aliases WHERE \(condition) LIMIT ?", arguments + [limit]
            ) { row in
                count += 1
                let (sequence, object): (Int64, Int64) = (try row.value(0), try row.value(1))
                (position.url, position.row) = (try row.value(2), sequence)
                let id = try objectRow(at: object)?.record.id
                guard purges.covers(position.url, id, sequence, began: try row.value(3)) else { return }
                aliases.append((sequence, object))
            }
            if count < limit { position.next(ofRanges: ranges) }
        }
        switch row.purge.scope {
        case .url(let url):
            try compare(
                "url = ? AND sequence > ? AND sequence < ? ORDER BY sequence", [url, position.row, row.sequence], ranges: 1)
        case .prefix, .host:
            let prefixes = row.purge.scope.prefixes ?? []
            let prefix = prefixes[position.range]
            try compare(
                "url >= ? AND url < CAST(? AS TEXT) AND (url, sequence) > (?, ?) ORDER BY url, sequence",
                [prefix, Array(prefix.utf8) + [0xff], position.url, position.row], ranges: prefixes.count)
        case .object(let id):
            guard let object = try knownObjectRow(id) else {
                position.next(ofRanges: 1)
                return ([], [])
            }
            // If the object is removed, its aliases are removed, too.
            guard try isLive(object) else {
                position.next(ofRanges: 1)
                return ([], [object])
            }
            try compare(
                "object = ? AND sequence > ? AND sequence < ? ORDER BY sequence",
                [object.sequence, position.row, row.sequence], ranges: 1)
        case .all where position.range == 0:
            try compare("sequence > ? AND sequence < ? ORDER BY sequence", [position.row, row.sequence], ranges: 2)
        case .all:
            let rows = try objectRows(
                "sequence > ? AND sequence < ? ORDER BY sequence LIMIT ?", [position.row, row.sequence, limit])
            position.row = rows.last?.sequence ?? 0
            if rows.count < limit { position.next(ofRanges: 2) }
            return ([], try rows.filter { try !isLive($0) })
        }
        let objects = Set(aliases.map(\.object)).sorted()
        return (aliases, try objects.compactMap { try objectRow(at: $0) }.filter { try !isLive($0) })
    }

    /// Counts what a purge removes, and changes nothing. Rows that another purge covers count too, until they are swept.
    ///
    /// - Parameter purge: Not counted itself.
    func count(_ purge: Purge, _ sequence: Int64) throws -> PurgeCounts {
        func number(_ sql: String, _ arguments: [any SQLiteValue]) throws -> Int64 {
            try database.first(sql, arguments) { try $0.number(0) } ?? 0
        }
        if purge.scope == .all, purge.isLocal {
            let totals = try state().totals
            let referenced = try number("SELECT count(*) FROM (SELECT DISTINCT object FROM aliases WHERE former = 0)", [])
            return PurgeCounts(purged: totals.aliases + max(0, totals.objects - referenced), bytes: totals.bytes)
        }
        let began = purge.isLocal ? Int64.max : purge.madeAt
        let includesUploads = purge.scope == .all || purge.scope.objectID != nil
        var counts = PurgeCounts()
        if let (condition, arguments) = try condition(purge.scope) {
            let aliases = "\(condition) AND sequence < ? AND began <= ?"
            let values = arguments + [sequence, began]
            counts.purged = try number("SELECT count(*) FROM aliases WHERE former = 0 AND \(aliases)", values)
            counts.bytes = try number(
                """
                SELECT ifnull(sum(length), 0) FROM objects
                WHERE objects.sequence IN (SELECT object FROM aliases WHERE \(aliases))
                AND (upload = 0 OR \(includesUploads ? 1 : 0) AND upload < ? AND upload_began <= ?)
                AND NOT EXISTS (
                    SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0 AND NOT (\(aliases)))
                """, values + [sequence, began] + values)
        }
        guard includesUploads else { return counts }
        // An object without an alias counts as one rendition.
        var (objects, arguments): (String, [any SQLiteValue]) = ("1", [])
        if let id = purge.scope.objectID { (objects, arguments) = ("id = ?", [id.bytes]) }
        let lonely = """
            FROM objects WHERE \(objects) AND sequence < ? AND upload < ? AND upload_began <= ?
            AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0)
            """
        let values = arguments + [sequence, sequence, began]
        counts.purged += try number("SELECT count(*) \(lonely)", values)
        counts.bytes += try number("SELECT ifnull(sum(length), 0) \(lonely)", values)
        return counts
    }

    /// The aliases that a scope covers; nil for none.
    private func condition(_ scope: PurgeScope) throws -> (sql: String, arguments: [any SQLiteValue])? {
        switch scope {
        case .all: return ("1", [])
        case .url(let url): return ("url = ?", [url])
        case .prefix, .host:
            // SQLite compares text by its bytes, and no byte of UTF-8 is 0xff: these bounds enclose exactly the URLs with the
            // prefix, and the index of URLs stores them contiguously.
            let prefixes = scope.prefixes ?? []
            let ranges = prefixes.map { _ in "url >= ? AND url < CAST(? AS TEXT)" }.joined(separator: " OR ")
            return ("(\(ranges))", prefixes.flatMap { [$0, Array($0.utf8) + [0xff]] as [any SQLiteValue] })
        case .object(let id):
            guard let object = try knownObjectRow(id) else { return nil }
            return ("object = ?", [object.sequence])
        }
    }

    /// The objects that a purge may remove; nil if there are many.
    func objects(of scope: PurgeScope) throws -> Set<ObjectID>? {
        if case .all = scope { return nil }
        var ids: Set<ObjectID> = []
        if let id = scope.objectID { ids.insert(id) }
        guard let (condition, arguments) = try condition(scope) else { return ids }
        try database.forEach(
            """
            SELECT DISTINCT objects.id FROM aliases JOIN objects ON objects.sequence = aliases.object
            WHERE \(condition) LIMIT \(Self.manyObjects)
            """, arguments
        ) { ids.insert(try $0.digest(0)) }
        return ids.count < Self.manyObjects ? ids : nil
    }

    /// The ids of purged objects are listed only below this number.
    private static var manyObjects: Int { 4096 }
}

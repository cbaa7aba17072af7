internal import Ledger

/// Purges: what they cover, and the removal of its rows.
extension CacheTables {
    /// What a purge removed.
    struct Purged: Sendable {
        /// Aliases, and objects without one.
        var renditions: Int64 = 0
        var bytes: Int64 = 0
        /// The removed objects; nil for many.
        var objects: Set<ObjectID>? = []
        /// Whether ``continuePurge()`` must be called next.
        var isPartial = false

        mutating func add(_ part: Purged) {
            renditions += part.renditions
            bytes += part.bytes
            objects = objects.flatMap { all in part.objects.map { all.union($0) } }
            if let count = objects?.count, count >= CacheTables.manyObjects { objects = nil }
            isPartial = part.isPartial
        }
    }

    /// Removes what a purge covers: aliases, and the objects that these lead or led to, unless another alias leads to the object
    /// or it was uploaded. Files follow with ``objectsToSweep(limit:)``.
    ///
    /// - Parameters:
    ///   - time: See ``Cache/purge(_:madeAt:with:)``.
    ///   - sequence: The latest sequence.
    ///   - inParts: Whether only the beginning of a large purge by prefix is done now.
    func purge(
        _ scope: PurgeScope, madeAt time: Int64? = nil, _ sequence: Int64, inParts: Bool = false
    ) throws -> Purged {
        if inParts, time == nil, case .prefix(let prefix) = scope {
            let purged = try purgePart(prefix, through: sequence)
            if purged.isPartial { try database.run("INSERT OR REPLACE INTO purging VALUES (?, ?)", [prefix, sequence]) }
            return purged
        }
        var time = time
        // The usual purge of everything takes no time for each row.
        if scope == .all, let moment = time, try !hasNewer(than: moment) { time = nil }
        var purged = try count(scope, madeAt: time)
        if scope == .all, time == nil {
            purged.objects = nil
            try database.run(
                """
                UPDATE cache_state SET
                    sequence = ?1, emptied = ?1, objects = 0, bytes = 0, object_space = 0, aliases = 0, alias_space = 0
                """, [sequence])
            return purged
        }
        let (objects, aliases) = Self.conditions(scope, madeAt: time)
        let ids = try database.all(
            "SELECT id FROM objects WHERE \(objects.sql) LIMIT \(Self.manyObjects)", objects.arguments
        ) { try $0.digest(0) as ObjectID }
        purged.objects = ids.count < Self.manyObjects ? Set(ids) : nil
        try database.run(
            "INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE \(objects.sql)", objects.arguments)
        // The rest leads to objects that stay.
        if let aliases {
            try database.run("DELETE FROM aliases WHERE \(aliases.sql) AND \(Self.leadsToLive)", aliases.arguments)
        }
        return purged
    }

    /// Whether there are uploads or aliases from after `time`.
    private func hasNewer(than time: Int64) throws -> Bool {
        try database.first(
            """
            SELECT EXISTS (SELECT 1 FROM objects WHERE uploaded = 1 AND created > ?1 AND \(Self.isLive))
                OR EXISTS (SELECT 1 FROM aliases WHERE fetched > ?1 AND \(Self.leadsToLive))
            """, [time]
        ) { try $0.value(0) } ?? false
    }

    /// Does the next part of a purge by prefix.
    ///
    /// - Returns: Nil if there is nothing to continue.
    func continuePurge() throws -> Purged? {
        let next = try database.first("SELECT prefix, sequence FROM purging") { row in
            (prefix: try row.value(0) as String, sequence: try row.value(1) as Int64)
        }
        guard let next else { return nil }
        let purged = try purgePart(next.prefix, through: next.sequence)
        if !purged.isPartial { try database.run("DELETE FROM purging WHERE prefix = ?", [next.prefix]) }
        return purged
    }

    /// The purges that ``continuePurge()`` has not ended.
    func unfinishedPurges() throws -> [PurgeScope] {
        try database.all("SELECT prefix FROM purging") { .prefix(try $0.value(0)) }
    }

    /// Removes a bounded number of the aliases with a prefix that are not later than a sequence, and the objects that only they
    /// lead or led to.
    private func purgePart(_ prefix: String, through sequence: Int64) throws -> Purged {
        let condition = Self.prefixCondition(prefix)
        let rows = try database.all(
            """
            SELECT sequence, object, former = 0 AND \(Self.leadsToLive) FROM aliases
            WHERE \(condition.sql) AND sequence <= ? ORDER BY url LIMIT \(Self.aliasesPerPart)
            """, condition.arguments + [sequence]
        ) { row in
            (sequence: try row.value(0) as Int64, object: try row.value(1) as Int64, counts: try row.value(2) as Bool)
        }
        for row in rows { try database.run("DELETE FROM aliases WHERE sequence = ?", [row.sequence]) }
        var purged = Purged(renditions: Int64(rows.count { $0.counts }), isPartial: rows.count == Self.aliasesPerPart)
        var ids: Set<ObjectID> = []
        for object in Set(rows.map(\.object)) {
            let removed = try database.first(
                """
                SELECT id, length FROM objects WHERE sequence = ? AND uploaded = 0 AND \(Self.isLive)
                    AND NOT EXISTS (SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0)
                """, [object]
            ) { (id: try $0.digest(0) as ObjectID, length: try $0.value(1) as Int64) }
            guard let removed else { continue }
            try database.run("INSERT INTO doomed SELECT sequence, id, extension FROM objects WHERE sequence = ?", [object])
            purged.bytes += removed.length
            ids.insert(removed.id)
        }
        purged.objects = ids
        return purged
    }

    private static var aliasesPerPart: Int { 1000 }

    /// Counts what a purge covers, and changes nothing.
    func count(_ scope: PurgeScope, madeAt time: Int64? = nil) throws -> Purged {
        let (objects, aliases) = Self.conditions(scope, madeAt: time)
        func number(_ sql: String, _ arguments: [any SQLiteValue]) throws -> Int64 {
            try database.first(sql, arguments) { try $0.value(0) } ?? 0
        }
        var purged = Purged()
        if scope == .all, time == nil {
            let totals = try state().totals
            let referenced = try number(
                """
                SELECT count(*) FROM (
                    SELECT DISTINCT object FROM aliases WHERE former = 0 AND \(Self.leadsToLive))
                """, [])
            purged.renditions = totals.aliases + totals.objects - referenced
            purged.bytes = totals.bytes
            return purged
        }
        purged.bytes = try number("SELECT ifnull(sum(length), 0) FROM objects WHERE \(objects.sql)", objects.arguments)
        if let aliases {
            purged.renditions = try number(
                "SELECT count(*) FROM aliases WHERE former = 0 AND \(Self.leadsToLive) AND \(aliases.sql)", aliases.arguments)
        } else {
            purged.renditions = try number(
                """
                SELECT ifnull(sum(max(1, (SELECT count(*) FROM aliases WHERE object = objects.sequence AND former = 0))), 0)
                FROM objects WHERE \(objects.sql)
                """, objects.arguments)
        }
        return purged
    }

    /// Calls `body` with the file of each object that a purge covers.
    func forEachFile(
        coveredBy scope: PurgeScope, madeAt time: Int64? = nil, _ body: (FileName) -> Void
    ) throws {
        let (objects, _) = Self.conditions(scope, madeAt: time)
        try database.forEach("SELECT id, extension FROM objects WHERE \(objects.sql)", objects.arguments) {
            body(try FileName($0, from: 0))
        }
    }

    private typealias Condition = (sql: String, arguments: [any SQLiteValue])

    /// The objects that a purge covers, and the aliases; nil for those of the objects.
    private static func conditions(
        _ scope: PurgeScope, madeAt time: Int64?
    ) -> (objects: Condition, aliases: Condition?) {
        var aliases: Condition
        switch scope {
        case .all:
            guard let time else { return ((isLive, []), nil) }
            let objects = """
                (uploaded = 0 OR created <= ?) AND \(isLive) AND NOT EXISTS (
                    SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0 AND fetched > ?)
                """
            return ((objects, [time, time]), ("fetched <= ?", [time]))
        case .object(let id): return (("id = ? AND created <= ? AND \(isLive)", [id.bytes, time ?? .max]), nil)
        case .url(let url): aliases = ("url = ?", [url])
        case .prefix(let prefix): aliases = prefixCondition(prefix)
        }
        if let time { aliases = ("\(aliases.sql) AND fetched <= ?", aliases.arguments + [time]) }
        let objects = """
            objects.sequence IN (SELECT object FROM aliases WHERE \(aliases.sql)) AND uploaded = 0 AND \(isLive)
            AND NOT EXISTS (
                SELECT 1 FROM aliases WHERE aliases.object = objects.sequence AND former = 0 AND NOT (\(aliases.sql)))
            """
        return ((objects, aliases.arguments + aliases.arguments), aliases)
    }

    /// SQLite compares text by its bytes, and no byte of UTF-8 is 0xff: these bounds enclose exactly the URLs with the prefix,
    /// and the index of URLs has them side by side.
    private static func prefixCondition(_ prefix: String) -> Condition {
        ("url >= ? AND url < CAST(? AS TEXT)", [prefix, Array(prefix.utf8) + [0xff]])
    }

    /// The ids of purged objects are listed only below this number.
    private static var manyObjects: Int { 4096 }
}

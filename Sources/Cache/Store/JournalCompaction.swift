internal import SystemIO

/// A rewrite of the journal without lines that no longer matter, from the rows of the index.
///
/// Changes continue meanwhile. Their lines are in the last part of the current journal, which ``ChangeLog`` appends to the copy.
/// They have greater sequences, so they take precedence over the copied rows.
struct JournalCompaction {
    static let fileName = Journal.fileName + ".new"

    private let index: ServingIndex
    private let directory: CacheDirectory
    private let isEnding: () -> Bool

    init(from index: ServingIndex, in directory: CacheDirectory, unless isEnding: @escaping () -> Bool) {
        self.index = index
        self.directory = directory
        self.isEnding = isEnding
    }

    /// Creates a durable journal with one line per row.
    ///
    /// - Parameter base: The base of its sequences.
    /// - Returns: Nil if the cache is closing or an error occurred.
    func write(base: Int64) -> Journal? {
        do {
            var journal = try Journal.create(Self.fileName, base: base, in: directory)
            guard try copyRows(into: &journal) else { return nil }
            try journal.sync()
            return journal
        } catch {
            // A full disk is the likeliest cause. The current journal is not affected.
            return nil
        }
    }

    /// Removes the copy, if it was not used.
    func discard() {
        try? directory.removeFile(Self.fileName)
    }

    private func copyRows(into journal: inout Journal) throws -> Bool {
        var object: Int64 = 0
        while case let rows = try index.current.objects(after: object, limit: Self.rowsPerQuery), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.flatMap { Self.lines(of: $0) })
            object = last.sequence
        }
        var key: AliasKey?
        while case let rows = try index.current.aliases(after: key, limit: Self.rowsPerQuery), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.map { JournalLine(sequence: $0.sequence, entry: .alias($0.record, $0.object.record.id)) })
            key = last.record.key
        }
        var former: FormerAliasRow?
        while case let rows = try index.current.formerAliases(after: former, limit: Self.rowsPerQuery), let last = rows.last {
            if isEnding() { return false }
            try journal.copy(rows.map { JournalLine(sequence: $0.sequence, entry: .formerAlias(url: $0.url, $0.object)) })
            former = last
        }
        return true
    }

    private static func lines(of row: ObjectRow) -> [JournalLine] {
        let object = JournalLine(sequence: row.sequence, entry: .object(row.record))
        return row.uploaded > 0 ? [object, JournalLine(sequence: row.uploaded, entry: .upload(row.record.id))] : [object]
    }

    private static let rowsPerQuery = 512
}

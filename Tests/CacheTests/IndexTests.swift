import SQLite
import SystemIO
import TestSupport
import Testing

@testable import Cache

/// Random lines about a few objects, aliases and URLs, so that they often concern the same ones.
private struct RandomLines {
    private var random: RandomRecords
    private let objects: [ObjectID]
    private let keys: [AliasKey]
    private let urls = ["https://a/1", "https://a/11", "https://a/ä", "https://b/", "https://c/"]
    private var sequence: Int64 = 0

    init(seed: UInt64) {
        random = RandomRecords(seed: seed, hasNul: false)
        objects = (0..<5).map { .test("object \($0)") }
        keys = (0..<6).map { .test("key \($0)") }
    }

    mutating func number(_ range: ClosedRange<Int>) -> Int { random.number(range) }

    mutating func lines(_ count: Int) -> [JournalLine] {
        (0..<count).map { _ in
            sequence += Int64(random.number(1...300))
            return JournalLine(sequence: sequence, entry: entry())
        }
    }

    private mutating func entry() -> JournalEntry {
        switch random.number(0...19) {
        case 0..<6: .object(random.objectRecord(id: random.element(of: objects)))
        case 6..<13:
            .alias(
                random.aliasRecord(key: random.element(of: keys), url: random.element(of: urls)), random.element(of: objects))
        case 13: .formerAlias(url: random.element(of: urls), random.element(of: objects))
        case 14..<16: .upload(random.element(of: objects))
        case 16: .purge(.url(random.element(of: urls)))
        case 17: .purge(.prefix(["https://a/1", "https://a/", "https://", "", "https://a/\u{c3}"][random.number(0...4)]))
        case 18: .purge(.object(random.element(of: objects)))
        default: .purge(random.chance(20) ? .all : .url("https://b/"))
        }
    }
}

@Suite("The index holds what the journal says") struct IndexTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
    }

    private func open(_ name: String) throws -> Index {
        try Index(path: "\(directory.path)/\(name)")
    }

    /// Compares every row that queries give with the model.
    private func expect(_ index: Index, equals model: IndexModel, _ note: Comment) throws {
        let totals = IndexTotals(
            objects: Int64(model.objects.count),
            bytes: model.objects.values.reduce(0) { $0.addingReportingOverflow($1.record.length).partialValue })
        #expect(try index.objects(after: 0, limit: 100) == model.objects.values.sorted { $0.sequence < $1.sequence }, note)
        // A sum of random lengths may be beyond the range that totals are checked for.
        if totals.bytes <= ObjectRecord.maxNumber { #expect(try index.totals() == totals, note) }
        let aliases = model.aliases.compactMap { key, alias in
            model.objects[alias.object].map { AliasRow(sequence: alias.sequence, record: alias.record, object: $0) }
        }
        let rows = try index.aliases(after: nil, limit: 100)
        #expect(rows.count == aliases.count, note)
        for alias in aliases {
            #expect(rows.contains(alias), note)
            #expect(try index.aliasRow(alias.record.key) == alias, note)
        }
        let formers = try index.formerAliases(after: nil, limit: 100)
        let expected = model.formers.map { FormerAliasRow(object: $0.object, url: $0.url, sequence: $1) }
        #expect(formers.count == expected.count && expected.allSatisfy { formers.contains($0) }, note)
    }

    @Test(arguments: UInt64(0)..<25) func everyLineChangesTheIndexAsItChangesAModel(seed: UInt64) throws {
        var random = RandomLines(seed: seed)
        let index = try open("index")
        var model = IndexModel()
        for line in random.lines(80) {
            if case .purge(let scope) = line.entry {
                let covered = try index.rows(coveredBy: scope, before: line.sequence)
                #expect(covered.sorted == model.applied(line), "seed \(seed): \(line)")
            }
            let removed = try index.follow([line], to: nil)
            let expected = model.apply(line)
            #expect(removed.sorted == expected, "seed \(seed): \(line)")
            try expect(index, equals: model, "seed \(seed): \(line)")
        }
        index.close()
    }

    /// While the index catches up with the journal, new lines are applied at once, and later again in their order.
    @Test(arguments: UInt64(0)..<25) func linesThatAreAppliedEarlyAndAgainInOrderGiveTheSameIndex(seed: UInt64) throws {
        var random = RandomLines(seed: seed)
        let lines = random.lines(120)
        var model = IndexModel()
        for line in lines { _ = model.apply(line) }
        let index = try open("index")
        var start = random.number(0...60)
        _ = try index.follow(Array(lines[..<start]), to: IndexPosition(journal: "j", offset: Int64(start)))
        for line in lines[random.number(start...100)...] { _ = try index.follow([line], to: nil) }
        while start < lines.count {
            let end = min(lines.count, start + random.number(1...30))
            let position = IndexPosition(journal: "j", offset: Int64(end))
            _ = try index.follow(Array(lines[start..<end]), to: position)
            #expect(try index.state().position == position)
            start = end
        }
        #expect(try index.objects(after: 0, limit: 100) == model.objects.values.sorted { $0.sequence < $1.sequence })
        let aliases = try index.aliases(after: nil, limit: 100)
        #expect(aliases.count == model.aliases.values.count { model.objects[$0.object] != nil })
        for alias in aliases { #expect(model.aliases[alias.record.key]?.sequence == alias.sequence) }
        // A purge must not miss a former object. It may find one that was stored again since.
        let formers = try index.formerAliases(after: nil, limit: 100)
        for (former, sequence) in model.formers where model.objects[former.object] != nil {
            #expect(formers.contains(FormerAliasRow(object: former.object, url: former.url, sequence: sequence)))
        }
        index.close()
    }

    @Test func anAliasThatChangedWhileTheIndexCaughtUpLeavesItsFormerObjectToAPurge() throws {
        let index = try open("index")
        let lines = ["old", "new"].enumerated().flatMap { number, name -> [JournalLine] in
            let record = ObjectRecord(
                id: .test(name), fileExtension: "mp4", length: 1, content: ContentDigest(digest: SourceDigest(of: [1]).digest),
                created: 0, facts: [])
            return [
                JournalLine(sequence: Int64(number * 10 + 1), entry: .object(record)),
                JournalLine(sequence: Int64(number * 10 + 2), entry: .alias(.test("https://a/"), .test(name))),
            ]
        }
        // The newer lines first, as by a publish during a rebuild, then the whole journal.
        _ = try index.follow(Array(lines[2...]), to: nil)
        _ = try index.follow(lines, to: nil)
        let covered = try index.rows(coveredBy: .url("https://a/"), before: 100)
        #expect(Set(covered.objects.map(\.record.id)) == [.test("old"), .test("new")])
        index.close()
    }

    @Test func aPurgeByPrefixCoversURLsThatGoOnWithAnyCharacter() throws {
        let index = try open("index")
        let covers = ["https://a/", "https://a/1", "https://a/\u{7f}", "https://a/\u{10ffff}\u{10ffff}"]
        let urls = covers + ["https://a0", "https://a"]
        var random = RandomRecords(seed: 7, hasNul: false)
        let lines = urls.enumerated().flatMap { number, url -> [JournalLine] in
            let record = random.objectRecord(id: .test(url))
            return [
                JournalLine(sequence: Int64(number * 10 + 1), entry: .object(record)),
                JournalLine(
                    sequence: Int64(number * 10 + 2),
                    entry: .alias(random.aliasRecord(key: .test(url), url: url), record.id)),
            ]
        }
        _ = try index.follow(lines, to: nil)
        let covered = try index.rows(coveredBy: .prefix("https://a/"), before: 100)
        #expect(Set(covered.objects.map(\.record.id)) == Set(covers.map { .test($0) }))
        #expect(covered.aliases == 4)
        index.close()
    }

    /// Of a million objects, a purge of a thousand must not read the rest.
    @Test(arguments: ["aliases", "former_aliases"]) func aPurgeByPrefixReadsOnlyTheURLsWithThatPrefix(table: String) throws {
        let database = try IndexDatabase(path: "\(directory.path)/index")
        let query = PurgeQuery(.prefix("https://a/"), before: 1)
        let plan = try database.query { connection in
            try connection.all(
                "EXPLAIN QUERY PLAN SELECT object FROM \(table) WHERE \(query.condition)", query.arguments
            ) { try $0.value(3) as String }
        }
        #expect(plan == ["SEARCH \(table) USING INDEX \(table)_by_url (url>? AND url<?)"])
        database.close()
    }

    @Test(arguments: UInt64(0)..<15) func aRewrittenJournalGivesTheSameIndex(seed: UInt64) throws {
        var random = RandomLines(seed: seed)
        let cache = try CacheDirectory(path: directory.path)
        let serving = try ServingIndex(in: cache, following: try Journal.open(in: cache)) { _ in }
        _ = try serving.current.follow(random.lines(150), to: nil)
        try serving.current.removeDanglingAliases()

        let compaction = JournalCompaction(from: serving, in: cache) { false }
        guard let journal = compaction.write(base: 1 << 40) else {
            Issue.record("seed \(seed): no journal")
            return
        }
        let lines = try journal.read(from: journal.start, limit: 1 << 24).lines
        let rebuilt = try open("rebuilt")
        _ = try rebuilt.follow(lines, to: nil)
        #expect(try rebuilt.objects(after: 0, limit: 100) == serving.current.objects(after: 0, limit: 100))
        #expect(try rebuilt.aliases(after: nil, limit: 100) == serving.current.aliases(after: nil, limit: 100))
        #expect(try rebuilt.formerAliases(after: nil, limit: 100) == serving.current.formerAliases(after: nil, limit: 100))
        rebuilt.close()
    }

    @Test func aRewriteThatIsInterruptedLeavesNoJournal() throws {
        let cache = try CacheDirectory(path: directory.path)
        let serving = try ServingIndex(in: cache, following: try Journal.open(in: cache)) { _ in }
        var random = RandomRecords(seed: 1)
        _ = try serving.current.follow([JournalLine(sequence: 1, entry: .object(random.objectRecord()))], to: nil)
        let compaction = JournalCompaction(from: serving, in: cache) { true }
        if let journal = compaction.write(base: 0) { Issue.record("a journal of \(journal.end) bytes") }
        compaction.discard()
        #expect(!directory.files("").contains("journal.new"))
    }

    @Test func queriesReturnPagesInOrder() throws {
        let index = try open("index")
        var random = RandomRecords(seed: 5, hasNul: false)
        let lines = (1...50).flatMap { number -> [JournalLine] in
            let record = random.objectRecord()
            return [
                JournalLine(sequence: Int64(number * 10), entry: .object(record)),
                JournalLine(sequence: Int64(number * 10 + 1), entry: .alias(random.aliasRecord(), record.id)),
            ]
        }
        _ = try index.follow(lines, to: nil)
        for limit in [1, 7, 50] {
            var sequences: [Int64] = []
            while case let page = try index.objects(after: sequences.last ?? 0, limit: limit), !page.isEmpty {
                #expect(page.count <= limit)
                sequences += page.map(\.sequence)
            }
            #expect(sequences == (1...50).map { $0 * 10 })
            var keys: [AliasKey] = []
            while case let page = try index.aliases(after: keys.last, limit: limit), !page.isEmpty {
                keys += page.map(\.record.key)
            }
            #expect(Set(keys).count == 50 && keys.count == 50)
        }
        var known: [ObjectID: String] = [:]
        for first in UInt8.min...UInt8.max {
            let extensions = try index.extensions(ofObjectsIn: first)
            #expect(extensions.keys.allSatisfy { $0.bytes[0] == first })
            known.merge(extensions) { $1 }
        }
        #expect(known.count == 50)
        index.close()
    }

    @Test func anIndexThatFollowsItsJournalIsNotClean() throws {
        let index = try open("index")
        try index.setClean(true)
        let position = IndexPosition(journal: "abc", offset: 42)
        _ = try index.follow([JournalLine(sequence: 1, entry: .upload(.test("a")))], to: position)
        #expect(try index.state() == IndexState(position: position, hand: 0, isClean: false))
        index.close()
    }

    @Test func stateIsRecordedAndAClosedIndexFails() throws {
        let index = try open("index")
        #expect(try index.state() == IndexState(position: IndexPosition(journal: "", offset: 0), hand: 0, isClean: false))
        try index.move(to: IndexPosition(journal: "abc", offset: 42))
        try index.setHand(7)
        try index.setClean(true)
        try index.flush(emptyingLog: true)
        index.close()
        let error = #expect(throws: IndexError.self) { try index.state() }
        // A query of a closed index says nothing about the file, but its store must look for another index.
        #expect(error?.description == "it is closed")
        let again = try open("index")
        #expect(try again.state() == IndexState(position: IndexPosition(journal: "abc", offset: 42), hand: 7, isClean: true))
        again.close()
    }
}

extension RemovedRows {
    /// The order of removed objects has no meaning.
    fileprivate var sorted: RemovedRows {
        RemovedRows(objects: objects.sorted { $0.sequence < $1.sequence }, aliases: aliases, unaliased: unaliased)
    }
}

extension IndexModel {
    fileprivate func applied(_ line: JournalLine) -> RemovedRows {
        var copy = self
        return copy.apply(line)
    }
}

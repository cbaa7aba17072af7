import SystemIO
import TestSupport
import Testing

@testable import Cache

@Suite("The journal is read as it was written, and rewritten when most of it is outdated") struct JournalTests {
    private let record = ObjectRecord(
        id: .test("a"), fileExtension: "mp4", length: 12, content: ContentDigest(digest: SourceDigest(of: [1]).digest),
        created: 1_700_000_000, facts: Array(0...255))
    private let alias = AliasRecord(
        key: .test("u"), sourceURL: "https://ä/\t\n\\?", validators: Validators(etag: "", lastModified: nil), fetchedAt: -1,
        freshFor: 0)

    private var lines: [JournalLine] {
        let entries: [JournalEntry] = [
            .object(record), .upload(.test("a")), .alias(alias, .test("a")), .formerAlias(url: "https://ä/\\", .test("b")),
            .purge(.url("https://ä/\\0a")), .purge(.prefix("")), .purge(.object(.test("c"))), .purge(.all),
        ]
        return entries.enumerated().map { JournalLine(sequence: Int64($0 * 100), entry: $1) }
    }

    @Test func linesHaveIncreasingSequencesAndAreReadInParts() throws {
        let temporary = try TemporaryDirectory()
        let directory = try CacheDirectory(path: temporary.path)
        var journal = try Journal.open(in: directory)
        var written: [JournalLine] = []
        for _ in 0..<50 { written += try journal.append(lines.map(\.entry), durable: false) }
        #expect(zip(written, written.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
        for limit in [1, 100, 5_000, 1 << 20] {
            var read: [JournalLine] = []
            var offset: Int64 = 0
            while offset < journal.end {
                let (some, next) = try journal.read(from: offset, limit: limit)
                #expect(next > offset)
                read += some
                offset = next
            }
            #expect(read == written)
        }
        let identity = journal.identity
        let end = journal.end
        journal.unlock()
        let again = try Journal.open(in: directory)
        #expect(again.identity == identity)
        #expect(again.end == end)
    }

    @Test func aJournalThatIsMostlyOutdatedIsRewrittenFromTheIndex() async throws {
        let temporary = try TemporaryDirectory()
        let cache = try Cache.open(temporary)
        let url = "https://ä/\t\n\\?"
        try await cache.put([1, 2, 3], url: url, object: .test("old"), facts: [9])
        try await cache.put([4, 5, 6], url: url, object: .test("new"), facts: Array(0...255))
        #expect(await cache.uploadedObject(.test("new")) != nil)
        let floor: Int64 = 100_000
        while try temporary.contents("journal").count < floor {
            #expect(
                await cache.renew(
                    .test(url), validators: Validators(), fetchedAt: -1, freshFor: 0, epoch: cache.epoch(for: url)) != nil)
        }
        try await waitUntil("the comparison of files and rows") { cache.store.reconciliation == nil }
        let aliasSequence = try #require(cache.store.aliasRow(.test(url))).sequence

        cache.store.compactJournal(floor: floor) { false }
        #expect(try temporary.contents("journal").count < 10_000)
        _ = try await cache.purge(.url("https://other/"))
        try await cache.put([7], url: "https://b/")
        #expect(try #require(cache.store.aliasRow(.test("https://b/"))).sequence > aliasSequence)
        cache.close()

        // The index follows the new journal, and can be rebuilt from it.
        for isIndexLost in [false, true] {
            if isIndexLost { try temporary.remove("index.sqlite") }
            let store = try Store(path: temporary.path)
            #expect(store.isCatchingUp == isIndexLost)
            store.catchUp()
            let row = try #require(store.aliasRow(.test(url)))
            #expect(row.sequence == aliasSequence)
            #expect(row.record.sourceURL == url && row.record.fetchedAt == -1 && row.record.freshFor == 0)
            #expect(row.object.record.id == .test("new") && row.object.record.facts == Array(0...255))
            #expect(row.object.uploaded > 0)
            #expect(store.objectRow(.test("https://b/")) != nil)
            // The former alias is copied, too: a purge of the source covers its former object, and not the uploaded one.
            let (removed, _) = isIndexLost ? store.applyPurge(.url(url)) {} : (RemovedRows(), nil)
            #expect(removed.objects.map(\.record.id) == (isIndexLost ? [.test("old")] : []))
            store.close()
        }
    }
}

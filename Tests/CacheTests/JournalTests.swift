import SystemIO
import Testing

@testable import Cache

@Suite struct JournalTests {
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

    @Test func everyEntryReadsAsItWasWritten() {
        for line in lines {
            let bytes = JournalText.line(line)
            #expect(bytes.last == 10)
            #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 || $0 == 9 })
            #expect(JournalText.parse(bytes.dropLast()[...]) == line)
        }
        let header = JournalText.header(identity: "abc", base: 1 << 40)
        #expect(JournalText.parseHeader(header.dropLast()[...])?.identity == "abc")
        #expect(JournalText.parseHeader(header.dropLast()[...])?.base == 1 << 40)
    }

    @Test func noDamageGoesUnnoticed() {
        for line in lines {
            let bytes = Array(JournalText.line(line).dropLast())
            for place in bytes.indices {
                var damaged = bytes
                damaged[place] ^= 0x04
                #expect(JournalText.parse(damaged[...]) == nil)
                #expect(JournalText.parse(bytes[..<place]) == nil)
            }
        }
    }

    @Test func linesGetGrowingSequencesAndAreReadInParts() throws {
        let temporary = try TemporaryDirectory()
        let directory = try CacheDirectory(path: temporary.path)
        var journal = try Journal.open(in: directory)
        var written: [JournalLine] = []
        for _ in 0..<50 { written += try journal.append(lines.map(\.entry), durable: false) }
        #expect(zip(written, written.dropFirst()).allSatisfy { $0.sequence < $1.sequence })
        for limit in [1, 100, 5_000, 1 << 20] {
            var read: [JournalLine] = []
            var place: Int64 = 0
            while place < journal.end {
                let (some, next) = try journal.read(from: place, limit: limit)
                #expect(next > place)
                read += some
                place = next
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

    @Test func journalIsWrittenAnewWhenMostOfItIsOld() async throws {
        let temporary = try TemporaryDirectory()
        let store = try Store(path: temporary.path, readers: 1)
        let reconciled = store.reconcile(unless: { false })
        #expect(reconciled != nil)
        let floor: Int64 = 100_000
        var applied = store.change { $0.applied }
        // Renewals of one alias until it is worth it.
        while applied < floor {
            applied = try store.change { state throws(SystemError) in
                _ = try store.record(Array(repeating: .alias(alias, record.id), count: 100), durable: false, in: &state)
                return state.applied
            }
        }
        _ = try store.change { state throws(SystemError) in
            try store.record([.object(record), .upload(record.id), .alias(alias, record.id)], durable: false, in: &state).lines
        }
        let sequence = store.change { $0.journal.nextSequence }
        store.compactIfWorthwhile(floor: floor, unless: { false })
        let (end, next, isBehind) = store.change { ($0.journal.end, $0.journal.nextSequence, $0.isBehind) }
        #expect(end < 10_000)
        #expect(next > sequence)
        #expect(!isBehind)
        _ = try store.change { state throws(SystemError) in
            try store.record([.purge(.url("https://other/"))], durable: true, in: &state).lines
        }
        store.close()

        // The index goes on with the new journal, and can be made from it.
        for isMade in [false, true] {
            if isMade { try temporary.remove("index.sqlite") }
            let again = try Store(path: temporary.path, readers: 1)
            #expect(again.isCatchingUp == isMade)
            again.catchUp()
            #expect(try again.index.alias(alias.key)?.record == alias)
            #expect(try again.index.object(record.id)?.record == record)
            #expect(try again.index.object(record.id)?.uploaded != 0)
            again.close()
        }
    }
}

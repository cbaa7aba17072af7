import SystemIO
import Testing

@testable import Cache

@Suite("Lines of the journal read as they were written, or not at all") struct JournalTextTests {
    private func parse(_ bytes: [UInt8]) -> JournalLine? {
        JournalText.parse(bytes.dropLast()[...])
    }

    @Test(arguments: UInt64(0)..<20) func everyEntryRoundTripsFromAllItsFields(seed: UInt64) {
        var random = RandomRecords(seed: seed)
        for _ in 0..<100 {
            let line = JournalLine(sequence: Int64(random.number(0...1 << 62)), entry: random.entry())
            let bytes = JournalText.line(line)
            #expect(bytes.last == UInt8(ascii: "\n"))
            #expect(bytes.dropLast().allSatisfy { $0 >= 0x20 && $0 != 0x7f || $0 == UInt8(ascii: "\t") })
            #expect(parse(bytes) == line)
        }
    }

    @Test(arguments: UInt64(0)..<10) func textsOfAnAliasRoundTripByteByByte(seed: UInt64) throws {
        var random = RandomRecords(seed: seed)
        for _ in 0..<50 {
            let record = random.aliasRecord()
            let line = JournalLine(sequence: 1, entry: .alias(record, random.digest()))
            guard case .alias(let read, _)? = parse(JournalText.line(line))?.entry else {
                Issue.record("no alias")
                return
            }
            // Strings compare by canonical equivalence, but a purge compares bytes.
            #expect(Array(read.sourceURL.utf8) == Array(record.sourceURL.utf8))
            #expect(read.validators.etag.map { Array($0.utf8) } == record.validators.etag.map { Array($0.utf8) })
            #expect(
                read.validators.lastModified.map { Array($0.utf8) } == record.validators.lastModified.map { Array($0.utf8) })
        }
    }

    @Test(arguments: UInt64(0)..<5) func linesOfOneJournalAreReadIndependently(seed: UInt64) {
        var random = RandomRecords(seed: seed)
        let lines = (0..<50).map { JournalLine(sequence: Int64($0), entry: random.entry()) }
        var bytes = lines.flatMap { JournalText.line($0) }
        let damaged = random.number(0...bytes.count - 1)
        let number = bytes[..<damaged].count { $0 == UInt8(ascii: "\n") }
        bytes[damaged] ^= 1
        let read = bytes.split(separator: UInt8(ascii: "\n")).compactMap { JournalText.parse($0) }
        // A damaged line break costs the two lines around it, and any other damage costs one line.
        let expected = lines.filter { $0.sequence != Int64(number) }
        #expect(read == expected || read == expected.filter { $0.sequence != Int64(number + 1) })
    }

    @Test(arguments: UInt64(0)..<8) func everyChangedOrMissingByteIsDetected(seed: UInt64) {
        var random = RandomRecords(seed: seed)
        let bytes = Array(JournalText.line(JournalLine(sequence: 7, entry: random.entry())).dropLast().prefix(400))
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 1 << UInt8(random.number(0...7))
            #expect(JournalText.parse(damaged[...]) == nil)
            #expect(JournalText.parse(bytes[..<index]) == nil)
        }
    }

    @Test func headerRoundTrips() {
        for base in [0, 1, 1 << 40, 1 << 62] as [Int64] {
            let header = JournalText.header(identity: "a\tb", base: base)
            let read = JournalText.parseHeader(header.dropLast()[...])
            #expect(read?.identity == "a\tb")
            #expect(read?.base == base)
            // A header is no entry, and an entry is no header.
            #expect(JournalText.parse(header.dropLast()[...]) == nil)
        }
        let line = JournalText.line(JournalLine(sequence: 0, entry: .purge(.all)))
        #expect(JournalText.parseHeader(line.dropLast()[...]) == nil)
        #expect(JournalText.parseHeader(JournalText.header(identity: "a", base: .max).dropLast()[...]) == nil)
    }

    @Test func valuesOutOfRangeAreRefused() {
        let id = ObjectID.test("a")
        let content = ContentDigest(digest: SourceDigest(of: [1]).digest)
        func parsed(_ sequence: Int64, _ entry: JournalEntry) -> JournalLine? {
            parse(JournalText.line(JournalLine(sequence: sequence, entry: entry)))
        }
        func object(_ length: Int64, _ created: Int64, _ fileExtension: String = "mp4", facts: Int = 0) -> JournalEntry {
            .object(
                ObjectRecord(
                    id: id, fileExtension: fileExtension, length: length, content: content, created: created,
                    facts: Array(repeating: 0, count: facts)))
        }
        #expect(parsed(0, object(1, 0)) != nil)
        #expect(parsed(-1, object(1, 0)) == nil)
        #expect(parsed(.max, object(1, 0)) == nil)
        for (length, created) in [(0, 0), (-1, 0), (.max, 0), (1, .max), (1, .min)] as [(Int64, Int64)] {
            #expect(parsed(1, object(length, created)) == nil)
        }
        for fileExtension in ["", "MP4", "a/b", "..", "mp4 ", "longerthan8", "ä"] {
            #expect(parsed(1, object(1, 0, fileExtension)) == nil)
        }
        #expect(parsed(1, object(1, 0, facts: ObjectRecord.maxFactsCount + 1)) == nil)
        for (fetchedAt, freshFor) in [(.max, nil), (0, .min), (0, .max)] as [(Int64, Int64?)] {
            let alias = AliasRecord(key: .test("u"), sourceURL: "u", fetchedAt: fetchedAt, freshFor: freshFor)
            #expect(parsed(1, .alias(alias, id)) == nil)
        }
    }

    /// Lines that only another program could have written, with a correct checksum.
    @Test(arguments: [
        "X\t1\tabc", "U\t1", "U\t1\tabc", "O\t1\ta\tb", "P\t1\tsome\tx", "P\t1\tobject\tnot-hex", "\t1\tall\t", "PP\t1\tall\t",
        "P\t+1\tall\t", "P\t 1\tall\t", "P\t\tall\t", "P\t1.0\tall\t", "P\t99999999999999999999\tall\t", "P\t1\tall\\\t",
        "P\t1\turl\ta\\", "P\t1\turl\ta\\0", "P\t1\turl\ta\\GG", "P\t1\turl\ta\\0A", "",
    ])
    func malformedLinesWithACorrectChecksumAreRefused(body: String) {
        let digest = Array(body.utf8).withUnsafeBytes { SourceDigest(of: $0) }
        let line = Hex.encode(digest.bytes.prefix(8)) + "\t" + body
        #expect(JournalText.parse(Array(line.utf8)[...]) == nil)
    }
}

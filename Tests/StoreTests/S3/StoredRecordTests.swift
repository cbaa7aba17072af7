import SystemIO
import Testing

@testable import Store

@Suite("Names and records are read as they were written, and nothing else is accepted") struct StoredRecordTests {
    private func record(facts: [UInt8] = [1, 2]) throws -> StoredRecord {
        try #require(StoredRecord(length: 7, digest: Array(0..<32), created: -5, facts: facts))
    }

    @Test func aRecordIsReadFromItsFields() throws {
        for facts in [[], [0], [UInt8](repeating: 255, count: ObjectRecord.maxFactsCount)] {
            let record = try record(facts: facts)
            #expect(StoredRecord(fields: record.fields) == record)
            #expect(StoredRecord(fields: FieldLines.decode(FieldLines.encode(record.fields))) == record)
        }
        var more = try record().fields
        more["other"] = "x"
        #expect(StoredRecord(fields: more) != nil)
    }

    @Test func theMetadataOfOrdinaryFactsFitsItsLimit() throws {
        #expect(try record(facts: [UInt8](repeating: 1, count: 500)).fitsMetadata)
        #expect(try !record(facts: [UInt8](repeating: 1, count: 800)).fitsMetadata)
        #expect(try record().fields.allSatisfy { $0.value.utf8.allSatisfy { (0x21...0x7E).contains($0) } })
    }

    /// libcurl 7.88 would sign them in another order than S3 defines.
    @Test func noNameIsTheBeginningOfAnother() throws {
        let names = try record().fields.keys.sorted()
        for name in names { #expect(!names.contains { $0 != name && $0.hasPrefix(name) }) }
    }

    @Test func aChangeOfAnyFieldIsDamage() throws {
        let fields = try record().fields
        for name in fields.keys {
            var changed = fields
            changed[name] = "8"
            #expect(StoredRecord(fields: changed) == nil, "\(name)")
            changed[name] = nil
            #expect(StoredRecord(fields: changed) == nil, "\(name)")
        }
    }

    @Test func valuesOutOfRangeAreRefused() {
        let digest = [UInt8](repeating: 0, count: 32)
        #expect(StoredRecord(length: 0, digest: digest, created: 0, facts: []) == nil)
        #expect(StoredRecord(length: .max, digest: digest, created: 0, facts: []) == nil)
        #expect(StoredRecord(length: 1, digest: [1], created: 0, facts: []) == nil)
        #expect(StoredRecord(length: 1, digest: digest, created: .max, facts: []) == nil)
        #expect(
            StoredRecord(length: 1, digest: digest, created: 0, facts: [UInt8](repeating: 0, count: (16 << 10) + 1)) == nil)
    }

    @Test(arguments: [(Int64.max, true), (61_000, true), (-59_000, true), (-59_001, false), (.min, false)])
    func anyPurgeIsComparedWithARecordOfAnOlderVersion(_ time: Int64, isCovered: Bool) throws {
        let record = try #require(StoredRecord(length: 1, digest: Array(0..<32), created: 1, facts: []))
        #expect(record.began(until: time) == isCovered)
    }

    @Test func namesAreIDsWithAnExtension() {
        let id = String(repeating: "0a", count: 32)
        #expect(RenditionName("\(id).mp4")?.description == "\(id).mp4")
        for text in [
            "", id, "\(id).", "\(id).MP4", "\(id).mp4.x", "\(id.dropLast()).mp4", "\(id.uppercased()).mp4", "\(id).\(id)",
        ] {
            #expect(RenditionName(text) == nil, "\(text)")
        }
    }

    @Test func keysOfTheStoreAreToldFromOthers() throws {
        let id = "ab" + String(repeating: "0", count: 62)
        let name = try #require(RenditionName("\(id).mp4"))
        for prefix in ["", "a/b", "a/b/"] {
            let keys = try KeySpace(prefix: prefix)
            #expect(keys.object(name) == "\(prefix.isEmpty ? "" : "a/b/")ab/\(id).mp4")
            #expect(keys.name(keys.object(name)) == name && keys.name(keys.record(name)) == name)
            for key in [
                "\(keys.prefix)ab/x.mp4", "\(keys.prefix)ac/\(id).mp4", "\(keys.prefix)\(id).mp4", "x/ab/\(id).mp4/y", "",
            ] {
                #expect(keys.name(key) == nil, "\(key)")
            }
        }
        for prefix in ["/a", "a//b", "..", "a/./b", "a\nb", String(repeating: "a", count: 600)] {
            #expect(throws: StoreConfigurationError.self) { try KeySpace(prefix: prefix) }
        }
    }
}

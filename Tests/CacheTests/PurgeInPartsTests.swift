import Ledger
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Cache

@Suite("A large purge by prefix works in parts, between which others change rows") struct PurgeInPartsTests {
    let directory: TemporaryDirectory

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func record(_ number: Int) throws -> ObjectRecord {
        ObjectRecord(
            id: .test("\(number)"), fileExtension: "mp4", length: 10,
            content: try #require(ContentDigest(bytes: [UInt8](repeating: UInt8(number % 256), count: 32))), created: 1,
            facts: [])
    }

    /// Adds 100 objects with 25 aliases each, and one with an alias elsewhere.
    private func fill(_ ledger: Ledger) throws -> Int64 {
        try ledger.write(.normal) { database in
            let tables = CacheTables(database)
            var sequence: Int64 = 0
            for number in 0...100 {
                sequence += 1
                let object = sequence
                try tables.insert(try record(number), object)
                for other in 0..<(number == 100 ? 1 : 25) {
                    sequence += 1
                    let url = number == 100 ? "https://b/" : "https://a/\(other)/\(number)"
                    try tables.insert(.test(url), leadingTo: object, sequence)
                }
            }
            try tables.setSequence(sequence)
            return sequence
        }
    }

    @Test func whatIsPublishedBetweenTheirPartsStays() throws {
        let ledger = try Ledger(directory: directory.path, owners: [CacheTables.owned])
        defer { ledger.close() }
        let sequence = try fill(ledger)
        var purged = try ledger.write(.full) { try CacheTables($0).purge(.prefix("https://a/"), sequence, inParts: true) }
        #expect(purged.isPartial && purged.renditions == 1000)
        // Fresh: of a new object, and of one that the purge has not reached.
        let kept = try ledger.write(.normal) { database in
            let tables = CacheTables(database)
            try tables.insert(try record(777), sequence + 1)
            try tables.insert(.test("https://a/0/new"), leadingTo: sequence + 1, sequence + 2)
            let old = try #require(try tables.aliasRow(.test("https://a/9/99")))
            try tables.insert(.test("https://a/0/again"), leadingTo: old.object.sequence, sequence + 3)
            try tables.setSequence(sequence + 3)
            return old.object.record.id
        }
        while let part = try ledger.write(.normal, { try CacheTables($0).continuePurge() }) { purged.add(part) }
        #expect(!purged.isPartial && purged.renditions == 2500 && purged.bytes == 990 && purged.objects?.count == 99)
        try ledger.read { database in
            let tables = CacheTables(database)
            for url in ["https://a/0/0", "https://a/9/99", "https://a/24/50"] {
                #expect(try tables.aliasRow(.test(url)) == nil)
            }
            for url in ["https://a/0/new", "https://a/0/again", "https://b/"] {
                #expect(try tables.aliasRow(.test(url)) != nil)
            }
            #expect(try tables.objectRow(kept) != nil)
            let totals = try tables.state().totals
            #expect(totals.objects == 3 && totals.aliases == 3 && totals.bytes == 30)
        }
    }

    @Test func aStartFinishesOneThatACrashHasInterrupted() throws {
        let ledger = try Ledger(directory: directory.path, owners: [CacheTables.owned])
        let sequence = try fill(ledger)
        let purged = try ledger.write(.full) { try CacheTables($0).purge(.prefix("https://a/"), sequence, inParts: true) }
        #expect(purged.isPartial)
        ledger.close()
        let store = try Store(path: directory.path)
        defer { store.close() }
        #expect(store.totals.objects == 1 && store.totals.aliases == 1)
        #expect(store.aliasRow(.test("https://a/24/99")) == nil)
    }

    @Test func olderWorkIsRefusedFromTheFirstPartOnAndLookUpsAfterTheLast() throws {
        let ledger = try Ledger(directory: directory.path, owners: [CacheTables.owned])
        _ = try fill(ledger)
        ledger.close()
        let store = try Store(path: directory.path)
        defer { store.close() }
        var remaining: [Int64] = []
        let (purged, failure) = store.purge(.prefix("https://a/"), with: { _ in }) { remaining.append(store.totals.aliases) }
        #expect(failure == nil && purged.renditions == 2500)
        #expect(remaining == [1501, 501, 1])
    }

    @Test func aSweepKeepsTheFileOfWhatWasPublishedAgain() async throws {
        let cache = try Cache.openWithoutHousekeeping(.test(directory))
        defer { cache.close() }
        for number in 0..<300 { try await cache.put([1], url: "https://a/\(number)") }
        // More than one sweep removes.
        _ = try await cache.purge(.prefix("https://a/"))
        let left = Set(directory.files())
        #expect(!left.isEmpty)
        for number in 0..<300 { try await cache.put([2], url: "https://a/\(number)") }
        while cache.store.sweep() {}
        #expect(directory.files().count == 300)
        for number in 0..<300 { #expect(try await cache.bytes(url: "https://a/\(number)") == [2]) }
    }

    @Test(arguments: [1, 300_000]) func onlyALargeFileIsHashedElsewhere(_ count: Int) async throws {
        let url = "https://a/1"
        do {
            let cache = try Cache.open(directory)
            defer { cache.close() }
            try await cache.put([UInt8](repeating: 7, count: count), url: url)
        }
        let verifications = Verifications()
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            threads: CacheThreads(
                create: { number, limit, name in
                    let threads = WorkThreads(count: number, limit: limit, name: name)
                    return name == "cache-verify" ? CountedWork(base: threads, counter: verifications) : threads
                }, includeHousekeeping: false), onStep: nil)
        defer { cache.close() }
        for _ in 0..<2 {
            #expect(try await cache.bytes(url: url)?.count == count)
            cache.forgetHot()
        }
        #expect(verifications.count.load(ordering: .relaxed) == (count == 1 ? 0 : 1))
    }

    @Test func aLookUpThatCannotWaitIsNoMiss() async throws {
        let cache = try Cache(
            configuration: .test(directory), clock: .system,
            threads: CacheThreads(create: { _, _, _ in FullWork() }, includeHousekeeping: false), onStep: nil)
        defer { cache.close() }
        let error = await #expect(throws: CacheError.self) {
            try await cache.look(for: AliasKey.test("https://a/1"), isFirstLook: true)
        }
        if case .busy = error {} else { Issue.record("\(String(describing: error))") }
        #expect(cache.statistics().misses == 0 && cache.statistics().refused == 1)
    }
}

private final class Verifications: Sendable {
    let count = Atomic(0)
}

private struct CountedWork: BlockingWork {
    let base: WorkThreads
    let counter: Verifications

    func submit(_ work: @escaping Work) -> Bool {
        counter.count.add(1, ordering: .relaxed)
        return base.submit(work)
    }

    func close() { base.close() }
}

private struct FullWork: BlockingWork {
    func submit(_ work: @escaping Work) -> Bool { false }
    func close() {}
}

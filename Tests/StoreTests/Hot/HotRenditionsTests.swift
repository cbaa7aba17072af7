import Glibc
import SystemIO
import Synchronization
import TestSupport
import Testing

@testable import Store

@Suite("Renditions in memory are used without a disk, and never after a purge") struct HotRenditionsTests {
    private let purges = PurgeIndex()
    private let content = ContentDigest(digest: SourceDigest(of: [1]).digest)

    private func hot(limit: Int = 1000) -> HotRenditions {
        HotRenditions(limit: limit, purges: purges, onStep: nil)
    }

    /// A file with a name, which a memory file has not: its link count is one.
    private func object(_ name: String, in directory: TemporaryDirectory, sequence: Int64 = 1) throws -> StoredObject {
        try directory.create(name, [1])
        let descriptor = try openDescriptor("\(directory.path)/\(name)", below: AT_FDCWD, flags: O_RDONLY)
        let record = ObjectRecord(
            id: .test(name), fileExtension: "mp4", length: 1, content: content, created: 0, facts: [])
        return StoredObject(record: record, descriptor: SharedDescriptor(descriptor), sequence: sequence)
    }

    private func rendition(_ object: StoredObject, url: String, sequence: Int64 = 1) -> CachedRendition {
        CachedRendition(object: object, alias: .test(url), aliasSequence: sequence, epoch: purges.epoch)
    }

    @Test func aHitIsCountedAndMarksItsObject() throws {
        let directory = try TemporaryDirectory()
        let hot = hot()
        let object = try object("a", in: directory, sequence: 7)
        let found = rendition(object, url: "u")
        #expect(hot.insert(found))
        hot.insert(object, epoch: purges.epoch)
        #expect(hot.use(AliasKey.test("u")) === found)
        #expect(hot.use(ObjectID.test("a"))?.object === object)
        #expect(hot.use(AliasKey.test("v")) == nil)
        #expect(hot.hits == 2)
        #expect(hot.peek(.test("a")) === object)
        #expect(hot.hits == 2)
        #expect(hot.visited.clear(7))
    }

    @Test func aSlowLookUpDoesNotReplaceANewerAlias() throws {
        let directory = try TemporaryDirectory()
        let hot = hot()
        let object = try object("a", in: directory)
        let newer = rendition(object, url: "u", sequence: 20)
        #expect(hot.insert(newer))
        #expect(hot.insert(rendition(object, url: "u", sequence: 10)))
        #expect(hot.use(AliasKey.test("u")) === newer)
        let newest = rendition(object, url: "u", sequence: 30)
        #expect(hot.insert(newest))
        #expect(hot.use(AliasKey.test("u")) === newest)
    }

    @Test func whatAPurgeOvertookIsNotInserted() throws {
        let directory = try TemporaryDirectory()
        let hot = hot()
        let object = try object("a", in: directory)
        let (covered, other) = (rendition(object, url: "https://a/1"), rendition(object, url: "https://b/"))
        let epoch = purges.epoch
        purges.append(.prefix("https://a/"))
        #expect(!hot.insert(covered))
        #expect(hot.use(AliasKey.test("https://a/1")) == nil)
        #expect(hot.insert(other))
        // Any purge may have covered an object, whose sources are not known here.
        hot.insert(object, epoch: epoch)
        #expect(hot.peek(.test("a")) == nil)
    }

    @Test func anEvictedFileIsNotInserted() throws {
        let directory = try TemporaryDirectory()
        let hot = hot()
        let object = try object("a", in: directory)
        try directory.remove("a")
        #expect(object.isUnlinked)
        #expect(hot.insert(rendition(object, url: "u")))
        hot.insert(object, epoch: purges.epoch)
        #expect(hot.use(AliasKey.test("u")) == nil)
        #expect(hot.peek(.test("a")) == nil)
    }

    @Test func aPurgeRemovesAliasesAndTheirObjects() throws {
        let directory = try TemporaryDirectory()
        for scope in [PurgeScope.url("https://a/"), .prefix("https://a"), .object(.test("a")), .all] {
            let hot = hot()
            let (first, second) = (try object("a", in: directory), try object("b", in: directory))
            #expect(hot.insert(rendition(first, url: "https://a/")))
            #expect(hot.insert(rendition(second, url: "https://b/")))
            for object in [first, second] { hot.insert(object, epoch: purges.epoch) }
            hot.remove(scope, removed: [])
            #expect(hot.use(AliasKey.test("https://a/")) == nil)
            #expect(hot.peek(.test("a")) == nil)
            #expect((hot.use(AliasKey.test("https://b/")) == nil) == (scope == .all))
            #expect((hot.peek(.test("b")) == nil) == (scope == .all))
            hot.remove([.test("b")])
            #expect(hot.use(AliasKey.test("https://b/")) == nil)
        }
    }

    @Test func theTablesAreBounded() throws {
        let directory = try TemporaryDirectory()
        let hot = hot(limit: 256)
        let object = try object("a", in: directory)
        for number in 0..<2_000 { #expect(hot.insert(rendition(object, url: "\(number)"))) }
        let count = (0..<2_000).count { hot.use(AliasKey.test("\($0)")) != nil }
        #expect(count <= 256)
        // Keys are distributed evenly enough that most of the table is used.
        #expect(count > 200)
        hot.removeAll()
        #expect((0..<2_000).allSatisfy { hot.use(AliasKey.test("\($0)")) == nil })
    }

    @Test(.timeLimit(.minutes(10))) func threadsNeverFindWhatAPurgeRemoved() throws {
        let directory = try TemporaryDirectory()
        let hot = hot(limit: 64)
        let object = try object("a", in: directory)
        let purged = Atomic(false)
        let wrong = Atomic(0)
        let reads = Atomic(0)
        let readers = (0..<3).map { reader in
            SystemThread.start(name: "hot") {
                var random = SeededNumbers(seed: UInt64(reader))
                // The threads read before, during and after the purge.
                var readsAfterPurge = 0
                while readsAfterPurge < 5_000 {
                    let wasPurged = purged.load(ordering: .sequentiallyConsistent)
                    let url = "https://a/\(Int.random(in: 0..<40, using: &random))"
                    if wasPurged { readsAfterPurge += 1 } else { reads.add(1, ordering: .relaxed) }
                    if hot.use(AliasKey.test(url)) != nil, wasPurged { wrong.add(1, ordering: .relaxed) }
                    // A lookup that began before the purge, and inserts its rendition after it.
                    _ = hot.insert(
                        CachedRendition(object: object, alias: .test(url), aliasSequence: 1, epoch: Epoch(number: 0, began: 0)))
                }
            }
        }
        try? blockUntil("reads before the purge") { reads.load(ordering: .relaxed) >= 5_000 }
        purges.append(.prefix("https://a/"))
        hot.remove(.prefix("https://a/"), removed: [])
        purged.store(true, ordering: .sequentiallyConsistent)
        for reader in readers { reader?.join() }
        #expect(reads.load(ordering: .relaxed) >= 5_000 && wrong.load(ordering: .relaxed) == 0)
        #expect((0..<40).allSatisfy { hot.use(AliasKey.test("https://a/\($0)")) == nil })
    }
}

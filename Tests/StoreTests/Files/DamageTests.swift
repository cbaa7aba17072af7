import Glibc
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A file that differs from what was published is never served") struct DamageTests {
    let directory: TemporaryDirectory
    let url = "https://example.com/a.gif"
    let bytes = noise(10_000, seed: 7)

    init() throws {
        directory = try TemporaryDirectory()
    }

    private func storeAndDamage(_ damage: (inout [UInt8]) -> Void) async throws {
        let cache = try Cache.open(directory)
        try await cache.put(bytes, url: url)
        cache.close()
        let file = "objects/" + directory.files()[0]
        var damaged = try directory.contents(file)
        damage(&damaged)
        try directory.write(damaged, to: file)
    }

    @Test(arguments: ["cut", "longer", "empty", "one bit"])
    func aDamagedFileIsAMissAndRemoved(_ kind: String) async throws {
        try await storeAndDamage { bytes in
            switch kind {
            case "cut": bytes.removeLast()
            case "longer": bytes.append(0)
            case "empty": bytes = []
            default: bytes[5_000] ^= 0x10
            }
        }
        var configuration = CacheConfiguration.test(directory)
        configuration.scrubBytesPerSecond = 0
        let cache = try Cache(configuration: configuration)
        defer { cache.close() }
        #expect(await cache.alias(.test(url)) == nil)
        #expect(cache.statistics().corrupt == 1)
        #expect(cache.statistics().objects == 0)
        #expect(directory.files().isEmpty)
        // The rendition can be stored again.
        #expect(try await cache.put(bytes, url: url).isStored)
        #expect(try await cache.bytes(url: url) == bytes)
    }

    @Test func aPublishReplacesADamagedFile() async throws {
        try await storeAndDamage { $0[1] ^= 1 }
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(try await cache.put(bytes, url: url).isStored)
        #expect(try await cache.bytes(url: url) == bytes)
        #expect(cache.statistics().corrupt == 1)
    }

    @Test func aPublishReplacesAFileThatCannotBeRead() async throws {
        try await storeAndDamage { _ in }
        let file = "objects/" + directory.files()[0]
        try directory.remove(file)
        // Opening it fails for every user.
        let path = directory.path + "/" + file
        #expect(symlink(path, path) == 0)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(await cache.alias(.test(url)) == nil)
        #expect(try await cache.put(bytes, url: url).isStored)
        cache.forgetHot()
        #expect(try await cache.bytes(url: url) == bytes)
    }

    @Test func aPublishReplacesAFileWithoutARow() async throws {
        let cache = try Cache.open(directory)
        defer { cache.close() }
        let id = ObjectID.test(url).description
        try directory.create("objects/\(id.prefix(2))/\(id.dropFirst(2)).mp4", [0, 0])
        #expect(try await cache.put(bytes, url: url).isStored)
        #expect(try directory.contents("objects/" + directory.files()[0]) == bytes)
    }

    @Test func aMissingFileIsAMissAndItsRowIsRemoved() async throws {
        try await storeAndDamage { _ in }
        try directory.remove("objects/" + directory.files()[0])
        let cache = try Cache.open(directory)
        defer { cache.close() }
        #expect(await cache.alias(.test(url)) == nil)
        #expect(await cache.object(.test(url)) == nil)
        #expect(cache.statistics().objects == 0)
    }

    @Test func scrubbingFindsDamageWithoutALookUp() async throws {
        try await storeAndDamage { $0[9_999] ^= 1 }
        let cache = try Cache.open(directory)
        defer { cache.close() }
        try await waitUntil("the scrubber") { cache.statistics().corrupt == 1 }
        #expect(cache.statistics().objects == 0)
    }

    @Test func scrubbingCountsASmallFileAs64KiB() async throws {
        let time = ManualClock()
        var configuration = CacheConfiguration.test(directory)
        configuration.scrubBytesPerSecond = 10 * 65_536
        func open() throws -> Cache {
            try Cache(
                configuration: configuration, clock: time.cacheClock,
                threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false), onStep: nil)
        }
        let first = try open()
        for number in UInt8(0)..<40 { try await first.put([number, 1], url: "https://example.com/\(number).gif") }
        first.close()
        for file in directory.files() { try directory.write([0, 0], to: "objects/" + file) }
        let cache = try open()
        defer { cache.close() }
        // The first round starts the clock.
        for _ in 0..<2 {
            cache.housekeeper.runRound()
            time.advance(1)
        }
        #expect(cache.statistics().corrupt == 10)
    }

    @Test func scrubbingDoesNotExceedItsRate() {
        var scrubber = ScrubProgress()
        var mayRead = [scrubber.credit(1000, now: 0), scrubber.credit(1000, now: 500_000_000)]
        #expect(mayRead == [false, true])
        #expect(scrubber.credit == 500)
        scrubber.spend(2_000, through: 1)
        mayRead = [scrubber.credit(1000, now: 1_500_000_000), scrubber.credit(1000, now: 2_500_000_000)]
        #expect(mayRead == [false, true])
        scrubber.endPass(now: 2_500_000_000)
        mayRead = [scrubber.credit(1000, now: 3_500_000_000)]
        #expect(mayRead == [false])
    }
}

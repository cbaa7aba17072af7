import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("A purge overtakes the work on what it covers, and nothing else") struct PurgeIndexTests {
    private static let urls = ["https://a/", "https://a/1", "https://a/11", "https://A/", "https://a/ä", "https://b/", ""]

    private func scope(_ random: inout RandomRecords) -> PurgeScope {
        switch random.number(0...9) {
        case 0: .all
        case 1, 2: .object(.test("\(random.number(0...3))"))
        case 3..<6: .prefix(["https://a/", "https://a/1", "https://", "", "https://a/a"][random.number(0...4)])
        default: .url(random.element(of: Self.urls))
        }
    }

    @Test func scopesCompareBytes() {
        // The two are equal as strings, but an origin may give them different bytes.
        let (composed, decomposed) = ("https://a/\u{e4}", "https://a/a\u{308}")
        #expect(composed == decomposed)
        #expect(PurgeScope.url(composed).covers(composed))
        #expect(!PurgeScope.url(composed).covers(decomposed))
        #expect(!PurgeScope.prefix(composed).covers(decomposed + "x"))
        #expect(PurgeScope.prefix("https://a/a").covers(decomposed))
        #expect(PurgeScope.prefix("").covers("https://a/"))
        #expect(!PurgeScope.prefix("https://a/1").covers("https://a/"))
    }

    @Test func uploadsAreCoveredByAllOnly() {
        #expect(PurgeScope.all.covers(nil))
        #expect(!PurgeScope.object(.test("a")).covers("https://a/"))
        #expect(!PurgeScope.prefix("").covers(nil))
        #expect(!PurgeScope.url("").covers(nil))
    }

    @Test func aScopeSurvivesItsEncoding() {
        let scopes = [PurgeScope.url("u"), .prefix("p"), .host("h"), .object(.test("o")), .all]
        for scope in scopes { #expect(PurgeScope(kind: scope.kind, argument: scope.argument) == scope) }
        for kind in ["x", "o", ""] { #expect(PurgeScope(kind: kind, argument: "o") == nil) }
    }

    @Test func theHostOfAURLHasNeitherSchemeNorPort() {
        let urls = ["http://a.test/", "https://a.test/x:y", "https://a.test:8443/x", "s3://a.test/k"]
        #expect(urls.allSatisfy { PurgeScope.host("a.test").covers($0) })
        #expect(PurgeScope.host("[::1]").covers("http://[::1]:8080/a") && PurgeScope.host("[::1]").covers("http://[::1]/"))
        for url in ["https://b.a.test/", "https://a.testx/", "https://b.test/https://a.test/", "file:///a.test/x"] {
            #expect(!PurgeScope.host("a.test").covers(url))
        }
    }

    @Test func aPurgeOfAnotherNodeCoversWhatBeganUpToItsTime() {
        let index = PurgeIndex()
        index.insert(.test(.url("https://a/"), madeAt: 100), 5)
        #expect(index.covers("https://a/", nil, 4, began: 100) && !index.covers("https://a/", nil, 4, began: 101))
        #expect(!index.covers("https://a/", nil, 6, began: 1) && !index.covers("https://b/", nil, 4, began: 1))
        // A later one with an earlier time covers no more, and one of this node everything before it.
        index.insert(.test(.url("https://a/"), madeAt: 50), 7)
        #expect(index.covers("https://a/", nil, 4, began: 100) && !index.covers("https://a/", nil, 6, began: 51))
        index.insert(Purge(.host("a"), madeAt: 60, isLocal: true, token: "x", entry: ""), 8)
        #expect(index.covers("https://a/", nil, 7, began: 1000) && !index.covers("https://a/", nil, 8, began: 0))
        #expect(
            !index.isCurrent(100, sourceURL: "https://a/", object: nil)
                && index.isCurrent(101, sourceURL: "https://a/", object: nil))
        for sequence in [5, 7, 8] { index.markSwept(Int64(sequence)) }
        #expect(index.covers("https://a/", nil, 4, began: 100) && !index.isCurrent(100, sourceURL: "https://a/", object: nil))
    }

    @Test func whatANodeRemovesForItselfIsNoPurgeForTheOthers() {
        let index = PurgeIndex()
        index.insert(.test(.url("https://a/"), madeAt: 50), 1)
        // Its origin has removed the source.
        index.insert(Purge(.url("https://a/"), madeAt: 100, isLocal: true, token: "x", entry: ""), 2)
        #expect(index.cover(of: "https://a/") == 50)
        #expect(!index.isCurrent(100, sourceURL: "https://a/", object: .test("a")))
        #expect(index.isCurrent(51, sourceURL: "https://a/", object: nil))
        #expect(!index.isCurrent(50, sourceURL: "https://a/", object: nil))
        index.insert(Purge(.url("https://a/"), madeAt: 200, isLocal: true, token: "y", entry: nil), 3)
        #expect(index.cover(of: "https://a/") == 200 && !index.isCurrent(200, sourceURL: "https://a/", object: nil))
    }

    @Test func whatWasDroppedCountsAsLaterThanAllWorkBeforeIt() {
        let index = PurgeIndex(limit: 8)
        for number in 0..<9 {
            index.insert(.test(.url("https://a/\(number)"), madeAt: Int64(100 + number)), Int64(number + 1), isSwept: true)
        }
        #expect(!index.isCurrent(101, sourceURL: "https://never-purged/", object: nil))
        #expect(index.isCurrent(108, sourceURL: "https://never-purged/", object: nil))
    }

    @Test func purgesThatThisNodeHasAcceptedForAllAreDroppedAsWell() {
        let index = PurgeIndex(limit: 8)
        for number in 1...100 {
            index.insert(
                Purge(.url("https://a/\(number)"), madeAt: Int64(number), isLocal: true, token: "\(number)", entry: nil),
                Int64(number), isSwept: true)
        }
        #expect(!index.isKnown("1") && !index.isKnown("90") && index.isKnown("97"))
    }

    @Test(arguments: UInt64(0)..<20) func anEpochIsOvertakenByLaterPurgesThatCoverIt(seed: UInt64) {
        var random = RandomRecords(seed: seed)
        let log = PurgeIndex()
        var purges: [PurgeScope] = []
        var epochs: [(epoch: Epoch, count: Int)] = []
        for _ in 0..<200 {
            epochs.append((log.epoch, purges.count))
            if random.chance(60) {
                let scope = scope(&random)
                log.append(scope)
                purges.append(scope)
            }
            let (epoch, count) = random.element(of: epochs)
            let url = random.chance(80) ? random.element(of: Self.urls) : nil
            let object = ObjectID.test("\(random.number(0...3))")
            let expected = purges[count...].contains { $0.covers(url) || $0 == .object(object) }
            #expect(log.overtook(epoch, sourceURL: url, object: object) == expected)
        }
        #expect(zip(epochs, epochs.dropFirst()).allSatisfy { $0.epoch.number <= $1.epoch.number })
    }

    @Test(arguments: UInt64(0)..<10) func aFullLogForgetsOnlyInTheSafeDirection(seed: UInt64) {
        var random = RandomRecords(seed: seed)
        let log = PurgeIndex(limit: 8)
        var purges: [PurgeScope] = []
        var epochs: [(epoch: Epoch, count: Int)] = [(log.epoch, 0)]
        for _ in 0..<100 {
            let scope = scope(&random)
            log.append(scope)
            purges.append(scope)
            epochs.append((log.epoch, purges.count))
            let (epoch, count) = random.element(of: epochs)
            let url = random.element(of: Self.urls)
            let isCovered = purges[count...].contains { $0.covers(url) }
            let isOvertaken = log.overtook(epoch, sourceURL: url)
            if isCovered { #expect(isOvertaken) }
            // The latest half is always remembered exactly.
            if purges.count - count <= 4 { #expect(isOvertaken == isCovered) }
        }
        let first = epochs[0].epoch
        #expect(log.overtook(first, sourceURL: "https://never-purged/"))
    }

    @Test func onlyItsOwnPurgeIsThePurgeOfAnObject() {
        let log = PurgeIndex(limit: 8)
        let start = log.epoch
        for scope in [PurgeScope.url("https://a/"), .prefix("https://"), .all, .object(.test("b"))] { log.append(scope) }
        log.overtakeAll(log.epoch.number + 1)
        #expect(!log.containsPurge(of: .test("a"), since: start))
        log.append(.object(.test("a")))
        let purged = log.epoch
        #expect(log.containsPurge(of: .test("a"), since: start) && !log.containsPurge(of: .test("a"), since: purged))
        // The log does not know what it has dropped.
        for number in 0..<9 { log.append(.url("https://a/\(number)")) }
        #expect(log.containsPurge(of: .test("c"), since: start))
    }

    @Test func anAnnouncedPurgeCoversEverythingUntilItIsInserted() {
        let index = PurgeIndex()
        let (url, other, id) = ("https://a/", "https://b/", ObjectID.test("a"))
        let before = index.epoch
        let purges = [
            Purge(.url(url), madeAt: 5, isLocal: true, token: "1", entry: ""),
            Purge(.object(id), madeAt: 5, isLocal: false, token: "2", entry: "1-0"),
        ]
        for purge in purges {
            let epoch = index.epoch
            #expect(index.announce(purge) && !index.announce(purge))
            #expect(index.isKnown(purge.token) && !index.isInserted(purge.token))
            // An object that was looked up before must not enter the table in memory.
            #expect(index.epoch != epoch)
        }
        #expect(index.hasUnswept && index.covers(url, nil, 100, began: 9) && !index.covers(other, nil, 100, began: 9))
        #expect(index.covers(nil, id, 100, began: 5) && !index.covers(nil, id, 100, began: 6))
        #expect(index.overtook(index.epoch, sourceURL: url) && !index.overtook(index.epoch, sourceURL: other))
        #expect(index.containsPurge(of: id, since: index.epoch))

        for (purge, sequence) in zip(purges, Int64(7)...) { index.insert(purge, sequence) }
        #expect(index.covers(url, nil, 6, began: 9) && !index.covers(url, nil, 9, began: 9))
        #expect(index.overtook(before, sourceURL: url) && !index.overtook(index.epoch, sourceURL: url))
        #expect(index.containsPurge(of: id, since: before) && !index.containsPurge(of: id, since: index.epoch))
        for sequence: Int64 in 7...8 { index.markSwept(sequence) }
        #expect(!index.hasUnswept && !index.announce(purges[0]))
    }

    // MARK: Publishes with noted epochs

    @Test(arguments: UInt64(0)..<6) func aPublishIsStoredUnlessAPurgeCameSinceItsEpoch(seed: UInt64) async throws {
        var random = RandomRecords(seed: seed)
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = try Cache.open(directory)
        defer { cache.close() }
        var purges: [PurgeScope] = []
        var works: [(url: String?, object: ObjectID, epoch: Epoch, count: Int)] = []
        for _ in 0..<60 {
            let url = random.chance(85) ? random.element(of: Self.urls) : nil
            works.append((url, .test("\(random.number(0...3))"), cache.epoch, purges.count))
            if random.chance(40) {
                let scope = scope(&random)
                purges.append(scope)
                _ = try await cache.purge(scope)
            }
            let work = works.remove(at: random.number(0...works.count - 1))
            let isPurged = purges[work.count...].contains { $0.covers(work.url) || $0 == .object(work.object) }
            let outcome = try await cache.put([1, 2], url: work.url, object: work.object, epoch: work.epoch)
            // The rendition can be served in any case.
            #expect(try outcome.rendition.descriptor.readAll() == [1, 2])
            #expect((outcome.unstoredReason == .purged) == isPurged)
            if let url = work.url {
                let isPurgedNow = purges[work.count...].contains { $0.covers(url) }
                #expect(cache.purges.overtook(work.epoch, sourceURL: url) == isPurgedNow)
                if !isPurged { #expect(await cache.alias(.test(url))?.objectID == work.object) }
            }
        }
    }
}

import SystemIO
import TestSupport
import Testing

@testable import Fleet
@testable import Store

struct PurgeTablesTests {
    private func purge(_ scope: PurgeScope, entry: String?) -> Purge {
        Purge(scope, madeAt: 7, isLocal: true, token: scope.argument, entry: entry)
    }

    @Test func purgesThatOthersMayNotKnowSurviveADamagedLedger() throws {
        let directory = try ScratchDirectory()
        let ledger = try Ledger(directory: directory.path, owners: [CacheTables.owned, PurgeTable.owned, PurgeTables.owned])
        defer { ledger.close() }
        let pending = [purge(.url("https://a/1"), entry: nil), purge(.prefix("https://b/"), entry: nil)]
        try ledger.write(.full) { database in
            for (index, purge) in (pending + [purge(.url("sent"), entry: "1-1")]).enumerated() {
                try PurgeTable(database).insert(purge, Int64(index + 1))
            }
            try PurgeTables(database).setPosition(PurgePosition(stream: "s", id: .zero))
        }
        try ledger.replaceDamaged()
        let (found, position) = try ledger.read { database in
            (try PurgeTable(database).all().map(\.purge), try PurgeTables(database).position())
        }
        #expect(found == pending && position == PurgePosition())
    }

    @Test(arguments: ["earliest", "latest", "monotonic", "part"], [Int64.min, -1, 1 << 53, .max])
    func aDamagedClockIsNotUsed(_ column: String, _ number: Int64) throws {
        let directory = try ScratchDirectory()
        let cache = try Cache.ofNode(in: directory.path)
        defer { cache.close() }
        let configuration = try ClusterConfiguration(address: "redis://127.0.0.1", name: "test", node: "n")
        let now = cache.sharedClock.monotonic
        try cache.ledger.write(.normal) {
            try PurgeTables($0).setClock(
                SharedClock.Sample(earliest: 1, latest: 2, monotonic: now), ofBoot: ClusterTime.boot, part: now, nodes: ["n"])
        }
        #expect(Cluster.tookPartRecently(cache, configuration))
        try cache.ledger.write(.normal) { try $0.execute("UPDATE clock SET \(column) = \(number)") }
        #expect(!Cluster.tookPartRecently(cache, configuration))
    }

    /// Without a boot id, the monotonic clock of another boot or machine would be taken for this one.
    @Test func aClockOfAnUnknownBootIsNotUsed() throws {
        let directory = try ScratchDirectory()
        let ledger = try Ledger(directory: directory.path, owners: [CacheTables.owned, PurgeTable.owned, PurgeTables.owned])
        defer { ledger.close() }
        func isUsed(_ boot: String) throws -> Bool {
            try ledger.write(.normal) { database in
                let tables = PurgeTables(database)
                let sample = SharedClock.Sample(earliest: 1, latest: 2, monotonic: 3)
                try tables.setClock(sample, ofBoot: boot, part: 3, nodes: ["n"])
                return try tables.clock(ofBoot: boot) != nil
            }
        }
        #expect(try isUsed("b") && !isUsed(""))
    }

    @Test func onePurgeOfEverythingStandsForTooMany() throws {
        let directory = try ScratchDirectory()
        let ledger = try Ledger(directory: directory.path, owners: [PurgeTable.owned])
        defer { ledger.close() }
        let most = PurgeTable.mostPending
        try ledger.write(.full) { database in
            let table = PurgeTable(database)
            for number in 1...most {
                try table.insert(
                    Purge(.url("\(number)"), madeAt: number, isLocal: true, token: "\(number)", entry: nil), number)
                try table.boundPending(token: "all")
            }
            #expect(try table.pendingCount() == most)
            try table.insert(Purge(.url("x"), madeAt: 5, isLocal: true, token: "x", entry: nil), most + 1)
            try table.boundPending(token: "all")
            let pending = try table.pending(limit: 10)
            #expect(pending.map(\.scope) == [.all] && pending.map(\.madeAt) == [most])
        }
    }

    @Test func rowsOfPurgesThatAreDoneAreRemovedBeyondABound() throws {
        let directory = try ScratchDirectory()
        let ledger = try Ledger(directory: directory.path, owners: [PurgeTable.owned])
        defer { ledger.close() }
        try ledger.write(.full) { database in
            let table = PurgeTable(database)
            let count = PurgeTable.kept * 5 / 4 + 1
            for number in 1...count {
                try table.insert(
                    Purge(.url("\(number)"), madeAt: number, isLocal: true, token: "\(number)", entry: "1-1"), number)
                if number > 1 { try table.markSwept(number) }
            }
            #expect(try table.hasManyDone())
            try table.removeDone()
            #expect(try table.all().count == Int(PurgeTable.kept) && table.all().first?.sequence == 1)
            #expect(try table.floor().madeAt == count - PurgeTable.kept + 1)
        }
    }
}

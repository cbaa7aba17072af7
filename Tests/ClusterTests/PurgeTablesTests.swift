import Ledger
import TestSupport
import Testing

@testable import Cluster

struct PurgeTablesTests {
    @Test func pendingPurgesSurviveADamagedLedger() throws {
        let directory = try ScratchDirectory()
        let ledger = try Ledger(directory: directory.path, owners: [PurgeTables.owned])
        let purges = [
            RecordedPurge(.url("https://a/1"), time: 7, token: "t"), RecordedPurge(.prefix("https://b/"), time: nil),
        ]
        try ledger.write(.full) { database in
            for purge in purges { try PurgeTables(database).addPending(purge) }
            try PurgeTables(database).setPosition(PurgePosition(stream: "s", id: .zero))
        }
        try ledger.replaceDamaged()
        let (pending, position) = try ledger.read { database in
            (try PurgeTables(database).pending(after: 0, limit: 10).map(\.purge), try PurgeTables(database).position())
        }
        #expect(pending == purges && position == PurgePosition())
    }
}

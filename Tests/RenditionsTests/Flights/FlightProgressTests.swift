import Sandbox
import Synchronization
import Testing

@testable import Renditions

@Suite("The progress of a fetch does not fall") struct FlightProgressTests {
    @Test func whatHadArrivedIsKnownAfterTheFetchHasFailed() {
        let (progress, turn) = (FlightProgress(), JobTurn())
        let arrived = Mutex<FlightProgress.Arrived?>(nil)
        progress.fetches { arrived.withLock { $0 } }
        #expect(progress.current(turn) == MissProgress())
        arrived.withLock { $0 = (count: 3, length: 10) }
        #expect(progress.current(turn).fetchedBytes == 3)
        // What a failed fetch returns.
        arrived.withLock { $0 = nil }
        let last = progress.current(turn)
        #expect(last.fetchedBytes == 3 && last.totalBytes == 10 && last.stage == .fetching)
        arrived.withLock { $0 = (count: 7, length: nil) }
        let next = progress.current(turn)
        #expect(next.fetchedBytes == 7 && next.totalBytes == nil)
        progress.loaded(bytes: 9)
        let loaded = progress.current(turn)
        #expect(loaded.fetchedBytes == 9 && loaded.totalBytes == 9 && loaded.stage == .waiting)
    }
}

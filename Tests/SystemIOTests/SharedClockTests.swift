import Synchronization
import Testing

@testable import SystemIO

@Suite("The cluster's time is bounded") struct SharedClockTests {
    /// A thread that read its clock before another stored a later reading must not make time pass twice.
    @Test func aReadingThatIsStoredLateMovesNothing() {
        let readings = Mutex<[UInt64]>([])
        let onReading = Mutex<(@Sendable () -> Void)?>(nil)
        let time = TimeSource(
            unixNanoseconds: { 0 },
            monotonicNanoseconds: {
                let reading = readings.withLock { $0.isEmpty ? 30_000_000_000 : $0.removeFirst() }
                onReading.withLock { $0.take() }?()
                return reading
            })
        let clock = SharedClock(time)
        // The server's time is 100,000 s when the monotonic clock is 0. The first answer takes long.
        readings.withLock { $0 = [20_000_000_000, 24_000_000_000] }
        onReading.withLock { $0 = { clock.set(100_024_000, askedAt: 23_900) } }
        clock.set(100_019_000, askedAt: 10_000)
        let (earliest, latest) = clock.bounds
        #expect((100_029_900...100_030_000).contains(earliest) && (100_030_000...100_030_200).contains(latest))
    }
}

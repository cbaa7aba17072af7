import SystemIO
import Testing

@Suite("A wait for a signal ends with the signal, the limit or the task", .timeLimit(.minutes(10))) struct AsyncSignalTests {
    @Test func aSignalEndsOneWaitOnly() async {
        let signal = AsyncSignal()
        for _ in 0..<5 {
            signal.signal()
            await signal.wait(for: .seconds(3600))
            let start = ContinuousClock.now
            await signal.wait(for: .milliseconds(50))
            #expect(ContinuousClock.now - start >= .milliseconds(50))
        }
    }

    @Test func aSignalEndsTheWaitInProgress() async {
        let signal = AsyncSignal()
        async let wait = signal.wait(for: .seconds(3600))
        // It ends the wait whether that has begun or not.
        signal.signal()
        #expect(await wait)
    }

    @Test func theCancellationOfTheTaskEndsTheWait() async {
        let signal = AsyncSignal()
        let task = Task { await signal.wait(for: .seconds(3600)) }
        task.cancel()
        #expect(await !task.value)
    }

    @Test func aTimerOfTheCallerEndsTheWait() async {
        let time = TimeSource(
            unixNanoseconds: TimeSource.system.unixNanoseconds, monotonicNanoseconds: TimeSource.system.monotonicNanoseconds,
            timers: { Deadline(after: .zero, $1) })
        await AsyncSignal().wait(for: .seconds(3600), time)
    }
}

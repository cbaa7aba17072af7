import Synchronization
import Testing

@testable import SystemIO

@Suite("A repeating thread runs a round after each interval and when it is woken", .timeLimit(.minutes(10)))
struct RepeatingThreadTests {
    @Test func theFirstRoundComesAtOnceAndEachWakeUpStartsAnother() {
        let thread = RepeatingThread(every: .seconds(3600))
        let rounds = Semaphore()
        thread.start(name: "test") { rounds.signal() }
        rounds.wait()
        for _ in 0..<3 {
            thread.wake()
            rounds.wait()
        }
        thread.close()
        #expect(!rounds.wait(for: .zero))
    }

    @Test func roundsRepeatAfterTheInterval() {
        let thread = RepeatingThread(every: .milliseconds(1))
        let rounds = Semaphore()
        thread.start(name: "test") { rounds.signal() }
        for _ in 0..<5 { rounds.wait() }
        thread.close()
    }

    @Test func aWakeUpDuringARoundIsNotLost() {
        let thread = RepeatingThread(every: .seconds(3600))
        let entered = Semaphore()
        let gate = Semaphore()
        thread.start(name: "test") {
            entered.signal()
            gate.wait()
        }
        entered.wait()
        thread.wake()
        gate.signal()
        entered.wait()
        gate.signal()
        thread.close()
    }

    @Test func closingEndsALongRoundAndReleasesItsWork() {
        final class Captured: Sendable {}
        weak var captured: Captured?
        do {
            let thread = RepeatingThread(every: .seconds(3600))
            let entered = Semaphore()
            let work = Captured()
            captured = work
            thread.start(name: "test") { [thread] in
                withExtendedLifetime(work) { entered.signal() }
                while !thread.isEnding { usleepOnce() }
            }
            entered.wait()
            #expect(!thread.isEnding)
            thread.close()
            #expect(thread.isEnding)
        }
        #expect(captured == nil)
    }

    @Test func aThreadThatWasNeverStartedCanBeClosed() {
        let thread = RepeatingThread(every: .milliseconds(1))
        thread.close()
        #expect(thread.isEnding)
    }
}

/// Gives the processor to another thread.
private func usleepOnce() {
    _ = Semaphore().wait(for: .milliseconds(1))
}

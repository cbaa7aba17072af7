import Testing

@testable import Prewarm

@Suite("A pause between polls ends early only by a signal", .timeLimit(.minutes(10))) struct PollPauseTests {
    @Test func aSignalEndsOneWaitOnly() async {
        let pause = PollPause()
        for _ in 0..<5 {
            pause.signal()
            await pause.wait(for: .seconds(3600))
            let start = ContinuousClock.now
            await pause.wait(for: .milliseconds(50))
            #expect(ContinuousClock.now - start >= .milliseconds(50))
        }
    }

    @Test func aSignalEndsTheWaitInProgress() async {
        let pause = PollPause()
        async let wait: Void = pause.wait(for: .seconds(3600))
        // It ends the wait whether that has begun or not.
        pause.signal()
        await wait
    }
}

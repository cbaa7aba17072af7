import TestSupport
import Testing

@testable import SystemIO

@Suite("The circuit breaker opens after outages and closes after a probe") struct CircuitBreakerTests {
    /// A breaker that tests can use within expectations.
    private final class Breaker {
        private var value = CircuitBreaker(.init(failures: 3, pause: .seconds(1), maxPause: .seconds(3)))

        func admit(at time: Duration) -> CircuitBreaker.Permit? { value.admit(at: time) }
        func succeed(_ permit: CircuitBreaker.Permit) -> Bool { value.succeed(permit) }
        func fail(_ permit: CircuitBreaker.Permit, at time: Duration) -> Bool { value.fail(permit, at: time) }
        func abandon(_ permit: CircuitBreaker.Permit, at time: Duration) { value.abandon(permit, at: time) }
        func phase(at time: Duration) -> BreakerPhase { value.phase(at: time) }

        /// Opens at the time 0.
        func open(at time: Duration = .zero) throws {
            for number in 1...3 {
                let permit = try #require(admit(at: time))
                #expect(fail(permit, at: time) == (number == 3))
            }
        }
    }

    private let breaker = Breaker()

    @Test func itOpensAfterConsecutiveOutagesOnly() throws {
        for _ in 0..<5 {
            for _ in 0..<2 {
                let permit = try #require(breaker.admit(at: .zero))
                #expect(!breaker.fail(permit, at: .zero))
            }
            let permit = try #require(breaker.admit(at: .zero))
            #expect(!breaker.succeed(permit))
        }
        #expect(breaker.phase(at: .zero) == .closed)
    }

    @Test func whileItIsOpenCallsFailAtOnce() throws {
        try breaker.open()
        #expect(breaker.phase(at: .milliseconds(999)) == .open)
        #expect(breaker.admit(at: .milliseconds(999)) == nil)
    }

    @Test func oneCallIsTheProbeAndItsSuccessCloses() throws {
        try breaker.open()
        #expect(breaker.phase(at: .seconds(1)) == .halfOpen)
        let probe = try #require(breaker.admit(at: .seconds(1)))
        #expect(breaker.admit(at: .seconds(1)) == nil)
        #expect(breaker.phase(at: .seconds(1)) == .halfOpen)
        #expect(breaker.succeed(probe))
        #expect(breaker.phase(at: .seconds(1)) == .closed)
        #expect(breaker.admit(at: .seconds(1)) != nil)
    }

    @Test func failedProbesLengthenThePauseUpToALimit() throws {
        try breaker.open()
        var now = Duration.seconds(1)
        for pause in [2, 3, 3] {
            let probe = try #require(breaker.admit(at: now))
            #expect(!breaker.fail(probe, at: now))
            #expect(breaker.admit(at: now + .seconds(pause) - .milliseconds(1)) == nil)
            now += .seconds(pause)
        }
        let probe = try #require(breaker.admit(at: now))
        #expect(breaker.succeed(probe))
        // After a success the first pause applies again.
        try breaker.open(at: now)
        #expect(breaker.admit(at: now + .seconds(1)) != nil)
    }

    @Test func callsThatBeganBeforeItOpenedChangeNothing() throws {
        let early = try #require(breaker.admit(at: .zero))
        try breaker.open()
        #expect(!breaker.succeed(early))
        #expect(breaker.phase(at: .zero) == .open)
        let probe = try #require(breaker.admit(at: .seconds(1)))
        #expect(!breaker.fail(early, at: .seconds(1)))
        #expect(breaker.succeed(probe))
    }

    @Test func aCancelledProbeIsFollowedByAnother() throws {
        try breaker.open()
        let probe = try #require(breaker.admit(at: .seconds(1)))
        breaker.abandon(probe, at: .seconds(1))
        #expect(breaker.admit(at: .seconds(1)) != nil)
    }

    @Test func pausesDoubleWithJitterUpToALimit() {
        let backoff = Backoff(first: .milliseconds(100), longest: .seconds(1))
        var numbers = SeededNumbers(seed: 3)
        for (failures, full) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (1_000_000, 1000)] {
            for _ in 0..<100 {
                let pause = backoff.pause(after: failures, using: &numbers)
                #expect(pause >= .milliseconds(full / 2) && pause <= .milliseconds(full))
            }
        }
    }

    @Test func aProbeWhoseEndIsNeverReportedCountsAsLost() throws {
        let breaker = Breaker()
        try breaker.open(at: .zero)
        _ = try #require(breaker.admit(at: .seconds(1)))
        #expect(breaker.admit(at: .seconds(60)) == nil)
        let second = try #require(breaker.admit(at: .seconds(61)))
        #expect(breaker.succeed(second))
    }
}

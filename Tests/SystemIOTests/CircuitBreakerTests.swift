import Synchronization
import TestSupport
import Testing

@testable import SystemIO

@Suite("The circuit breaker opens after outages and closes after a probe") struct CircuitBreakerTests {
    private struct Outage: Error {}

    private final class World: Sendable {
        let time = Mutex(Duration.zero)
        /// The number of times that the breaker has opened or closed.
        let changes = Mutex(0)
    }

    /// A breaker with the time of each call. Each report returns whether the breaker has opened, or closed.
    private final class Breaker: Sendable {
        private let world: World
        private let value: CircuitBreaker<Outage>

        init() {
            let world = World()
            self.world = world
            value = CircuitBreaker(
                BreakerLimits(failures: 3, pause: .seconds(1), maxPause: .seconds(3)), now: { world.time.withLock(\.self) }
            ) { _ in world.changes.withLock { $0 += 1 } }
        }

        func admit(at time: Duration) -> CircuitBreaker<Outage>.Permit? {
            set(time)
            return value.admit()
        }

        func succeed(_ permit: CircuitBreaker<Outage>.Permit) -> Bool { hasChanged { value.succeeded(permit) } }

        func fail(_ permit: CircuitBreaker<Outage>.Permit, at time: Duration) -> Bool {
            set(time)
            return hasChanged { value.failed(permit, Outage()) }
        }

        func abandon(_ permit: CircuitBreaker<Outage>.Permit, at time: Duration) {
            set(time)
            value.abandoned(permit)
        }

        func phase(at time: Duration) -> BreakerPhase {
            set(time)
            return value.phase
        }

        private func set(_ new: Duration) { world.time.withLock { $0 = new } }

        private func hasChanged(_ report: () -> Void) -> Bool {
            let before = world.changes.withLock(\.self)
            report()
            return world.changes.withLock(\.self) > before
        }

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

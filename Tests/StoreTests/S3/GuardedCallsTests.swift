import Synchronization
import SystemIO
import Testing

@testable import Store

@Suite("A call is retried within its deadline") struct GuardedCallsTests {
    /// Attempts of a call that always fails, and its error. Each attempt takes `cost` by the calls' clock.
    private func attempts(
        within limit: Duration, pause: Duration, cost: Duration
    ) async -> (times: [Duration], error: StoreError?, retries: Int) {
        let time = Mutex(Duration.zero)
        let meter = StoreMeter()
        var times: [Duration] = []
        let calls = GuardedCalls(
            limits: BreakerLimits(failures: 3, pause: .seconds(1), maxPause: .seconds(1)),
            backoff: Backoff(first: pause, longest: pause), meter: meter, now: { time.withLock { $0 } }, report: { _ in })
        let error = await storeError {
            try await calls.perform(.get, within: limit) { timeLeft throws(StoreError) in
                times.append(timeLeft)
                time.withLock { $0 += cost }
                throw .unreachable(cause: "a test")
            }
        }
        return (times, error, meter.snapshot.retries)
    }

    @Test func credentialsThatMayNotDeleteAreNoOutage() async {
        let calls = GuardedCalls(
            limits: BreakerLimits(failures: 1, pause: .seconds(1), maxPause: .seconds(1)),
            backoff: Backoff(first: .zero, longest: .zero), meter: StoreMeter(), now: { .zero }, report: { _ in })
        for (operation, phase) in [(StoreOperation.delete, BreakerPhase.closed), (.put, .open)] {
            _ = await storeError {
                try await calls.perform(operation, within: .seconds(1)) { _ throws(StoreError) in
                    throw .denied(code: "AccessDenied")
                }
            }
            #expect(calls.phase == phase, "\(operation)")
        }
    }

    @Test func aRefusedDeletionDoesNotEndAnOutage() async {
        let time = Mutex(Duration.zero)
        let events = Recorder<StoreEvent>()
        let calls = GuardedCalls(
            limits: BreakerLimits(failures: 1, pause: .seconds(1), maxPause: .seconds(1)),
            backoff: Backoff(first: .zero, longest: .zero), meter: StoreMeter(), now: { time.withLock { $0 } },
            report: { events.add($0) })
        let denied = StoreError.denied(code: "AccessDenied")
        for operation in [StoreOperation.put, .delete] {
            _ = await storeError {
                try await calls.perform(operation, within: .seconds(1)) { _ throws(StoreError) in throw denied }
            }
            time.withLock { $0 += .seconds(2) }
        }
        #expect(calls.phase == .halfOpen && events.values == [.suspended(denied)])
        // The next call is a probe again.
        _ = await storeError { try await calls.perform(.put, within: .seconds(1)) { _ throws(StoreError) in } }
        #expect(calls.phase == .closed && events.values == [.suspended(denied), .resumed])
    }

    /// A store that does not work until ``end()``, and a clock that moves by hand.
    private final class Outage: Sendable {
        let error = StoreError.unreachable(cause: "a test")
        let sent = Recorder<String>()
        let events = Recorder<StoreEvent>()
        private let time = Mutex(Duration.zero)
        private let isOver = Mutex(false)

        var calls: GuardedCalls {
            GuardedCalls(
                limits: BreakerLimits(failures: 1, pause: .seconds(1), maxPause: .seconds(1)),
                backoff: Backoff(first: .zero, longest: .zero), meter: StoreMeter(), now: { self.time.withLock { $0 } },
                probe: { _ throws(StoreError) in try self.attempt("probe") }, report: { self.events.add($0) })
        }

        func call(_ calls: GuardedCalls) async -> StoreError? {
            await storeError {
                try await calls.perform(.get, within: .seconds(1), attempts: 1) { _ throws(StoreError) in
                    try self.attempt("call")
                }
            }
        }

        private func attempt(_ name: String) throws(StoreError) {
            sent.add(name)
            if !isOver.withLock({ $0 }) { throw error }
        }

        func waitForPause() { time.withLock { $0 += .seconds(2) } }

        func end() { isOver.withLock { $0 = true } }
    }

    /// A call may be large, and have little time.
    @Test func anOutageEndsWithASmallProbeBeforeTheNextCall() async {
        let outage = Outage()
        let calls = outage.calls
        #expect(await outage.call(calls) == outage.error)
        #expect(await outage.call(calls) == .suspended)
        outage.waitForPause()
        #expect(await outage.call(calls) == outage.error)
        #expect(outage.sent.values == ["call", "probe"] && calls.phase == .open)
        outage.waitForPause()
        outage.end()
        #expect(await outage.call(calls) == nil)
        #expect(await outage.call(calls) == nil)
        #expect(outage.sent.values == ["call", "probe", "probe", "call", "call"])
        #expect(outage.events.values == [.suspended(outage.error), .resumed])
    }

    @Test func withoutCallsAProbeEndsTheOutageWhenItIsDue() async {
        let outage = Outage()
        let calls = outage.calls
        await calls.probeIfDue(within: .seconds(1))
        #expect(await outage.call(calls) == outage.error)
        await calls.probeIfDue(within: .seconds(1))
        #expect(outage.sent.values == ["call"] && calls.phase == .open)
        outage.waitForPause()
        await calls.probeIfDue(within: .seconds(1))
        #expect(outage.sent.values == ["call", "probe"] && calls.phase == .open)
        outage.waitForPause()
        outage.end()
        await calls.probeIfDue(within: .seconds(1))
        await calls.probeIfDue(within: .seconds(1))
        #expect(outage.sent.values == ["call", "probe", "probe"] && calls.phase == .closed)
        #expect(outage.events.values == [.suspended(outage.error), .resumed])
    }

    @Test func aPauseBeyondTheDeadlineEndsTheCallAtOnce() async {
        let outcome = await attempts(within: .seconds(20), pause: .seconds(60), cost: .zero)
        #expect(outcome.times == [.seconds(20)] && outcome.retries == 0)
        #expect(outcome.error == .unreachable(cause: "a test"))
    }

    @Test func eachAttemptIsGivenTheTimeThatIsLeft() async {
        let outcome = await attempts(within: .seconds(20), pause: .milliseconds(1), cost: .seconds(8))
        #expect(outcome.times == [.seconds(20), .seconds(12), .seconds(4)] && outcome.retries == 2)
    }

    @Test func anAttemptThatUsesUpTheTimeIsTheLast() async {
        let outcome = await attempts(within: .seconds(20), pause: .milliseconds(1), cost: .seconds(10))
        #expect(outcome.times == [.seconds(20), .seconds(10)] && outcome.retries == 1)
        #expect(outcome.error == .unreachable(cause: "a test"))
    }
}

/// A value that the closures of a call share with their test.
private final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    init(_ value: Value) {
        state = Mutex(value)
    }

    var value: Value { state.withLock { $0 } }

    func update(_ body: (inout Value) -> Void) { state.withLock { body(&$0) } }
}

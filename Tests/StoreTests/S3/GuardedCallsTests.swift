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

    /// A call may be large, and have little time.
    @Test func anOutageEndsWithASmallProbeBeforeTheNextCall() async {
        let time = Mutex(Duration.zero)
        let works = Mutex(false)
        let sent = Recorder<String>()
        let events = Recorder<StoreEvent>()
        let outage = StoreError.unreachable(cause: "a test")
        let calls = GuardedCalls(
            limits: BreakerLimits(failures: 1, pause: .seconds(1), maxPause: .seconds(1)),
            backoff: Backoff(first: .zero, longest: .zero), meter: StoreMeter(), now: { time.withLock { $0 } },
            probe: { _ throws(StoreError) in
                sent.add("probe")
                if !works.withLock({ $0 }) { throw outage }
            }, report: { events.add($0) })
        func call() async -> StoreError? {
            await storeError {
                try await calls.perform(.get, within: .seconds(1), attempts: 1) { _ throws(StoreError) in
                    sent.add("call")
                    if !works.withLock({ $0 }) { throw outage }
                }
            }
        }
        #expect(await call() == outage)
        #expect(await call() == .suspended)
        time.withLock { $0 += .seconds(2) }
        #expect(await call() == outage)
        #expect(sent.values == ["call", "probe"] && calls.phase == .open)
        time.withLock { $0 += .seconds(2) }
        works.withLock { $0 = true }
        #expect(await call() == nil)
        #expect(await call() == nil)
        #expect(sent.values == ["call", "probe", "probe", "call", "call"])
        #expect(events.values == [.suspended(outage), .resumed])
    }

    @Test func withoutCallsAProbeEndsTheOutageWhenItIsDue() async {
        let time = Mutex(Duration.zero)
        let works = Mutex(false)
        let sent = Recorder<String>()
        let events = Recorder<StoreEvent>()
        let outage = StoreError.unreachable(cause: "a test")
        let calls = GuardedCalls(
            limits: BreakerLimits(failures: 1, pause: .seconds(1), maxPause: .seconds(1)),
            backoff: Backoff(first: .zero, longest: .zero), meter: StoreMeter(), now: { time.withLock { $0 } },
            probe: { _ throws(StoreError) in
                sent.add("probe")
                if !works.withLock({ $0 }) { throw outage }
            }, report: { events.add($0) })
        await calls.probeIfDue(within: .seconds(1))
        _ = await storeError {
            try await calls.perform(.get, within: .seconds(1), attempts: 1) { _ throws(StoreError) in throw outage }
        }
        await calls.probeIfDue(within: .seconds(1))
        #expect(sent.values.isEmpty && calls.phase == .open)
        time.withLock { $0 += .seconds(2) }
        await calls.probeIfDue(within: .seconds(1))
        #expect(sent.values == ["probe"] && calls.phase == .open)
        time.withLock { $0 += .seconds(2) }
        works.withLock { $0 = true }
        await calls.probeIfDue(within: .seconds(1))
        await calls.probeIfDue(within: .seconds(1))
        #expect(sent.values == ["probe", "probe"] && calls.phase == .closed)
        #expect(events.values == [.suspended(outage), .resumed])
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

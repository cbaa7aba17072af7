import Testing

@testable import Fetch

@Suite struct AdmissionTests {
    private func admission(limit: Int = 3, perKey: Int = 2, queue: Int = 4, queuePerKey: Int = 3) -> Admission<Int, String> {
        Admission(Admission.Limits(running: limit, runningPerKey: perKey, waiting: queue, waitingPerKey: queuePerKey))
    }

    @Test func runsUpToBothBounds() {
        var admission = admission()
        expect(admission.request(1, key: "a"), .run)
        expect(admission.request(2, key: "a"), .run)
        expect(admission.request(3, key: "a"), .wait)
        expect(admission.request(4, key: "b"), .run)
        expect(admission.request(5, key: "c"), .wait)
        #expect(admission.runningCount == 3)
        #expect(admission.waitingCount == 2)
    }

    @Test func aFullKeyHoldsNobodyElseUp() {
        var admission = admission()
        for id in 1...3 { _ = admission.request(id, key: "slow") }
        _ = admission.request(4, key: "b")
        expect(admission.request(5, key: "b"), .wait)
        admission.release("b")
        expect(admission.next(), 5)
        expect(admission.next(), nil)
        admission.release("slow")
        expect(admission.next(), 3)
    }

    @Test func queuesAreBoundedInAllAndForEachKey() {
        var admission = admission(limit: 1, perKey: 1)
        for id in 1...4 { _ = admission.request(id, key: "a") }
        #expect(admission.waitingCount == 3)
        expect(admission.request(5, key: "a"), .full)
        expect(admission.request(6, key: "b"), .wait)
        expect(admission.request(7, key: "c"), .full)
    }

    @Test func whoGoesOnWaitsFirstAndIsNeverTurnedAway() {
        var admission = admission(limit: 1, perKey: 1, queue: 1, queuePerKey: 1)
        expect(admission.request(1, key: "a"), .run)
        expect(admission.request(2, key: "a"), .wait)
        expect(admission.request(3, key: "a", isContinuation: true), .wait)
        admission.release("a")
        expect(admission.next(), 3)
    }

    @Test func whoLeavesMakesRoomInTheQueue() {
        var admission = admission(limit: 1, perKey: 1, queue: 1)
        _ = admission.request(1, key: "a")
        _ = admission.request(2, key: "a")
        admission.leave(1)
        admission.leave(2)
        expect(admission.request(3, key: "a"), .wait)
        admission.release("a")
        expect(admission.next(), 3)
    }
}

@Suite struct StallMeterTests {
    private let start = ContinuousClock.now

    @Test func noticesAWindowWithTooFewBytes() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        meter.receive(3000)
        expect(meter.isStalled(at: start + .seconds(3), hasBegun: true), false)
        meter.receive(2999)
        expect(meter.isStalled(at: start + .seconds(5), hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(6), hasBegun: true), true)
    }

    @Test func waitsForTheAnswerToBegin() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(9), hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(10), hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(13), hasBegun: true), true)
    }

    @Test func rateOfZeroSwitchesItOff() {
        var meter = StallMeter(rate: 0, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(60), hasBegun: true), false)
    }
}

/// `#expect` for a call that changes what it is made on, which the macro does not take.
private func expect<Value: Equatable>(_ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: sourceLocation)
}

import Testing

@testable import Fetch

@Suite("A stall meter measures the rate of a response in windows") struct StallMeterTests {
    private let start = ContinuousClock.now

    @Test func windowWithTooFewBytesIsAStall() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        meter.receive(3000)
        expect(meter.isStalled(at: start + .seconds(3), hasBegun: true), false)
        meter.receive(2999)
        expect(meter.isStalled(at: start + .seconds(5), hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(6), hasBegun: true), true)
    }

    @Test func firstWindowBeginsWithTheResponse() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(9), hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(10), hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(13), hasBegun: true), true)
    }

    @Test func rateOfZeroTurnsTheMeterOff() {
        var meter = StallMeter(rate: 0, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(60), hasBegun: true), false)
    }
}

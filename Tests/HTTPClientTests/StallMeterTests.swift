import TestSupport
import Testing

@testable import HTTPClient

@Suite("A stall meter measures the rate of a response in windows") struct StallMeterTests {
    private let start = ContinuousClock.now

    @Test func windowWithTooFewBytesIsAStall() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        for quarter in 1...4 {
            meter.receive(750)
            expect(meter.isStalled(at: start + .seconds(3) * quarter / 4, hasBegun: true), false)
        }
        // The window moves: what came in its first quarter is missing from the next one.
        meter.receive(749)
        expect(meter.isStalled(at: start + .milliseconds(3700), hasBegun: true), false)
        expect(meter.isStalled(at: start + .milliseconds(3750), hasBegun: true), true)
    }

    @Test func aResponseThatStopsIsAStallAfterOneWindow() {
        var meter = StallMeter(rate: 1000, window: .seconds(8))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        meter.receive(1_000_000)
        var now = start + .seconds(1)
        while !meter.isStalled(at: now, hasBegun: true) { now += .milliseconds(250) }
        #expect(now - start <= .seconds(11))
    }

    @Test func firstWindowBeginsWithTheResponse() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(9), hasBegun: false), false)
        for quarter in 0...3 {
            expect(meter.isStalled(at: start + .seconds(10) + .seconds(3) * quarter / 4, hasBegun: true), false)
        }
        expect(meter.isStalled(at: start + .seconds(13), hasBegun: true), true)
    }

    @Test func rateOfZeroTurnsTheMeterOff() {
        var meter = StallMeter(rate: 0, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(60), hasBegun: true), false)
    }
}

import Testing

@testable import HTTP

@Suite("Utilization of a loop is measured per period") struct LoopUtilizationTests {
    private static let second: UInt64 = 1_000_000_000

    /// Whether a loop is busy after each second, given the hundredths of it that the loop has used.
    private func states(_ hundredths: [UInt64]) -> [Bool] {
        var utilization = LoopUtilization(now: 5, processorTime: 7)
        var taken: UInt64 = 7
        return hundredths.enumerated().map { index, share in
            taken += share * Self.second / 100
            let wasBusy = utilization.isBusy
            let hasChanged = utilization.update(now: 5 + UInt64(index + 1) * Self.second, processorTime: taken)
            #expect(hasChanged == (utilization.isBusy != wasBusy))
            return utilization.isBusy
        }
    }

    @Test func loopBecomesBusyAtAFifthOfAProcessor() {
        #expect(states([0, 10, 19, 20, 95]) == [false, false, false, true, true])
    }

    @Test func busyLoopStaysBusyAboveATenth() {
        #expect(states([30, 11, 10, 9, 11, 19, 20]) == [true, true, true, false, false, false, true])
    }

    @Test func onlyTheLastPeriodCounts() {
        #expect(states([90, 0, 0]) == [true, false, false])
    }

    @Test func shortPeriodIsNotMeasured() {
        var utilization = LoopUtilization(now: 0, processorTime: 0)
        let moment = LoopUtilization.shortestPeriod - 1
        let hasChangedAtOnce = utilization.update(now: moment, processorTime: moment)
        #expect(!hasChangedAtOnce && !utilization.isBusy)
        // The moment is part of the period that follows.
        let hasChanged = utilization.update(now: moment * 10, processorTime: moment * 2)
        #expect(hasChanged && utilization.isBusy)
    }
}

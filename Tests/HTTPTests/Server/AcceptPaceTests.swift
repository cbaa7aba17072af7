import Testing

@testable import HTTP

@Suite struct AcceptPaceTests {
    @Test func itGrowsWhileConnectionsKeepComing() {
        var pace = AcceptPace()
        #expect((1...9).map { pace.next(turn: $0) } == [1, 2, 4, 8, 16, 32, 64, 64, 64])
    }

    @Test func itBeginsAnewAfterATurnWithout() {
        var pace = AcceptPace()
        #expect([1, 2, 4, 5, 6, 9].map { pace.next(turn: $0) } == [1, 2, 1, 2, 4, 1])
    }

    @Test func drainingTakesMoreAndMoreInOneTurn() {
        var pace = AcceptPace()
        #expect((0..<4).map { _ in pace.next(turn: 7) } == [1, 2, 4, 8])
    }
}

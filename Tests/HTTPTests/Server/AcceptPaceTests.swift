import Testing

@testable import HTTP

@Suite("Connections are accepted at a growing pace") struct AcceptPaceTests {
    @Test func paceDoublesWhileConnectionsArrive() {
        var pace = AcceptPace()
        #expect((1...9).map { pace.next(turn: $0) } == [1, 2, 4, 8, 16, 32, 64, 64, 64])
    }

    @Test func paceRestartsAfterATurnWithoutConnections() {
        var pace = AcceptPace()
        #expect([1, 2, 4, 5, 6, 9].map { pace.next(turn: $0) } == [1, 2, 1, 2, 4, 1])
    }

    @Test func paceDoublesWithinOneTurn() {
        var pace = AcceptPace()
        #expect((0..<4).map { _ in pace.next(turn: 7) } == [1, 2, 4, 8])
    }
}

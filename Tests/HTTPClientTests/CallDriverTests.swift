import TestSupport
import Testing

@testable import HTTPClient

@Suite("A cancelled call ends at once, except for its lookup", .timeLimit(.minutes(10))) struct CallDriverTests {
    /// A GET whose result is its end.
    private final class Call: HTTPCall {
        let url: String
        let finishesLookup: Bool
        private(set) var ends: [HTTPError?] = []

        init(_ url: String, finishesLookup: Bool) {
            (self.url, self.finishesLookup) = (url, finishesLookup)
        }

        var timeout: Duration { .seconds(600) }
        func nextRequest() -> ClientRequest? { ClientRequest("GET", url, timeout: timeout) }
        func receive(_ head: HTTPHead) -> Bool { true }
        func receive(_ bytes: UnsafeRawBufferPointer) -> Bool { true }
        func continues(after result: Result<Void, HTTPError>) -> Bool { false }
        func end(_ error: HTTPError?) { ends.append(error) }
    }

    /// Advances until the call has ended, at most for a minute.
    private func advance(_ driver: CallDriver, on multi: borrowing MultiHandle, until call: Call) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while call.ends.isEmpty, ContinuousClock.now < deadline {
            try driver.advance(on: multi)
            if call.ends.isEmpty { try multi.wait(milliseconds: 10) }
        }
    }

    @Test(arguments: [true, false]) func aCallKeepsItsSlotUntilItsLookupHasEnded(finishesLookup: Bool) throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/a.gif", LoopbackAnswer(steps: [.hang]))
        try #require(CurlLibrary.prepare())
        let multi = try MultiHandle(idleConnections: 1)
        var active = 0
        let driver = CallDriver(HTTPClient.Limits(running: 1)) { active = $0.active }
        nonisolated(unsafe) let call = Call(origin.url("/a.gif"), finishesLookup: finishesLookup)
        // The lookup begins when the driver advances.
        driver.handle(.submit(1) { call }, on: multi)
        driver.handle(.cancel(1), on: multi)
        #expect(call.ends.count == (finishesLookup ? 0 : 1))
        try advance(driver, on: multi, until: call)
        #expect(call.ends == [HTTPError.cancelled] && active == 0)
        driver.handle(.cancel(1), on: multi)
        #expect(call.ends.count == 1)
    }

    @Test func aCallWhoseLookupFailsAfterItWasCancelledEndsAsCancelled() throws {
        try #require(CurlLibrary.prepare())
        let multi = try MultiHandle(idleConnections: 1)
        let driver = CallDriver(HTTPClient.Limits(running: 1)) { _ in }
        // The resolver refuses a label of more than 63 bytes without asking a server.
        nonisolated(unsafe) let call = Call("http://\(String(repeating: "a", count: 100)).test/", finishesLookup: true)
        driver.handle(.submit(1) { call }, on: multi)
        driver.handle(.cancel(1), on: multi)
        try advance(driver, on: multi, until: call)
        #expect(call.ends == [HTTPError.cancelled])
    }
}

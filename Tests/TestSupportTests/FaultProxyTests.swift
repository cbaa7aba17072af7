import TestSupport
import Testing

@Suite("The proxy forwards bytes, and fails as it is told") struct FaultProxyTests {
    private let origin: LoopbackOrigin
    private let proxy: FaultProxy

    init() throws {
        let body = Self.body
        origin = try LoopbackOrigin(["/": { _ in .ok(body) }])
        proxy = try FaultProxy(to: origin.port)
    }

    private static let body = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    private func stop() {
        proxy.stop()
        origin.stop()
    }

    /// One request on a connection of its own; nil where it fails.
    private func answer() -> RawHTTPResponse? {
        guard var client = try? RawHTTPClient(port: proxy.port, timeout: 10) else { return nil }
        return try? client.request("GET", "/")
    }

    @Test func bytesPassUnchanged() throws {
        defer { stop() }
        #expect(answer()?.body == Self.body)
        #expect(proxy.connections == 1)
    }

    @Test func aDelayIsAddedToEachAnswer() throws {
        defer { stop() }
        proxy.faults = .delay(.milliseconds(60))
        let elapsed = ContinuousClock().measure { #expect(answer()?.body == Self.body) }
        #expect(elapsed >= .milliseconds(60))
    }

    @Test(arguments: [FaultProxy.Failure.close, .reset, .garbage([1, 2, 3])])
    func anAnswerIsCutAfterSomeBytes(_ failure: FaultProxy.Failure) throws {
        defer { stop() }
        proxy.faults = .init(responses: .init(failure: failure, after: 1000))
        #expect(answer() == nil)
        #expect(proxy.failures == 1)
        proxy.faults = .none
        #expect(answer()?.body == Self.body)
    }

    @Test func garbageTakesThePlaceOfAnAnswer() throws {
        defer { stop() }
        proxy.faults = .init(responses: .init(failure: .garbage(Array("HTTP/1.1 299 Odd\r\n\r\n".utf8))))
        #expect(answer()?.status == 299)
    }

    @Test func aStalledConnectionStaysOpenWithoutAnAnswer() throws {
        defer { stop() }
        proxy.faults = .init(requests: .init(failure: .stall))
        var client = try RawHTTPClient(port: proxy.port, timeout: 1)
        #expect(throws: RawHTTPClient.Failure.self) { try client.request("GET", "/") }
        #expect(origin.requests.isEmpty)
    }

    @Test func failuresAreLimitedInNumber() throws {
        defer { stop() }
        proxy.faults = .init(responses: .init(failure: .reset), failureLimit: 2)
        #expect(answer() == nil)
        #expect(answer() == nil)
        #expect(answer()?.body == Self.body)
    }

    @Test func connectionsAreRefusedAndAcceptedAgainOnTheSamePort() throws {
        defer { stop() }
        for _ in 0..<3 {
            proxy.faults = .refusing
            #expect(throws: RawHTTPClient.Failure.self) { _ = try RawHTTPClient(port: proxy.port) }
            proxy.faults = .none
            #expect(answer()?.status == 200)
        }
    }

    @Test func openConnectionsAreClosedOnDemand() throws {
        defer { stop() }
        var client = try RawHTTPClient(port: proxy.port, timeout: 10)
        #expect(try client.request("GET", "/").status == 200)
        proxy.closeConnections()
        #expect(throws: RawHTTPClient.Failure.self) { try client.request("GET", "/") }
        #expect(answer()?.status == 200)
    }

    @Test func anotherServerCanTakeOver() throws {
        defer { stop() }
        let other = try LoopbackOrigin(["/": { _ in .ok([7]) }])
        defer { other.stop() }
        proxy.target = other.port
        #expect(answer()?.body == [7])
    }
}

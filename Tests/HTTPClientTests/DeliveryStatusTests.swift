import HTTPClient
import TestSupport
import Testing

@Suite("The status of a response decides about a delivery, however its body ends", .timeLimit(.minutes(10)))
struct DeliveryStatusTests {
    private static let bodies: [(fields: String, steps: [LoopbackAnswer.Step])] = [
        // Ends with the connection, which the receiver keeps open.
        ("", [.hang]), ("Content-Length: 1000000\r\n", [.hang]),
        ("Content-Length: 9\r\n", []), ("Transfer-Encoding: chunked\r\n", [.send(Array("zz\r\n".utf8))]),
        ("", [.sendForever([UInt8](repeating: 0x20, count: 65_536))]),
    ]

    @Test(arguments: [200, 400, 503], bodies.indices) func theStatusDecides(_ status: Int, _ body: Int) async throws {
        let (fields, steps) = Self.bodies[body]
        let answer = LoopbackAnswer.raw("HTTP/1.1 \(status) Status\r\n\(fields)\r\n", then: steps)
        let origin = try LoopbackOrigin(["/hook": { _ in answer }])
        defer { origin.stop() }
        let client = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { client.stop() }
        let request = ClientRequest("POST", origin.url("/hook"), body: .bytes([1]), timeout: .seconds(60))
        let start = ContinuousClock.now
        let result = await client.deliver(request)
        #expect("\(result)" == "\(DeliveryResult(status: status))")
        #expect(ContinuousClock.now - start < .seconds(30))
    }

    @Test func aShortBodyIsReadSoThatTheConnectionIsReused() async throws {
        let origin = try LoopbackOrigin(["/hook": { _ in .status(200) }])
        defer { origin.stop() }
        let client = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { client.stop() }
        let request = ClientRequest("POST", origin.url("/hook"), body: .bytes([1]), timeout: .seconds(60))
        for _ in 0..<3 {
            let result = await client.deliver(request)
            #expect("\(result)" == "delivered")
        }
        #expect(origin.connections == 1 && origin.count("/hook") == 3)
    }
}

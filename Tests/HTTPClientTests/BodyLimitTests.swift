import HTTPClient
import SystemIO
import TestSupport
import Testing

@Suite("A body may be as long as its limit", .timeLimit(.minutes(10))) struct BodyLimitTests {
    /// A body without a declared length ends with its connection.
    @Test(arguments: [true, false], [true, false])
    func aBodyOfTheLimitIsReceivedAndALongerOneIsNot(declaresLength: Bool, isFile: Bool) async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        let client = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { client.stop() }
        let memory = try MemoryFile(name: "test")
        let file = memory.reader
        func response(limit: Int) async throws -> ClientResponse {
            var request = ClientRequest("GET", origin.url("/a"), timeout: .seconds(60))
            request.destination = isFile ? .file(file, limit: limit) : .memory(limit: limit)
            return try await client.send(request)
        }
        for length in [0, 1, 100] {
            let body = [UInt8](repeating: 7, count: length)
            origin.on("/a", .response(body: body, declaresLength: declaresLength))
            let received = try await response(limit: length)
            let bytes = try isFile ? DescriptorIO.read(1000, from: file.number, at: 0) : received.body
            #expect(received.length == length && bytes == body)
            if length == 0 { continue }
            await #expect(throws: HTTPError.tooLarge(limit: length - 1)) { try await response(limit: length - 1) }
        }
    }

    /// With a time limit for the call that no test reaches.
    @Test func anErrorDoesNotWaitForABodyThatNeverComes() async throws {
        let origin = try LoopbackOrigin()
        defer { origin.stop() }
        origin.on("/a", .raw("HTTP/1.1 503 Status\r\nContent-Length: 9\r\n\r\nbody", then: [.hang]))
        let client = try HTTPClient(name: "test", limits: .init(running: 1))
        defer { client.stop() }
        var request = ClientRequest("GET", origin.url("/a"), timeout: .seconds(3600))
        request.destination = .memory(limit: 100)
        let response = try await client.send(request)
        #expect(response.status == 503 && response.body == Array("body".utf8))
    }
}

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
}

import TestSupport
import Testing

/// A Gifreel and an nginx with the same bytes.
struct ServersWithOneFile: Sendable {
    /// One of the two, and what a request to it contains.
    struct Server: Sendable {
        let port: Int
        let path: String
        let tag: String
        let date: String

        init(port: Int, path: String) throws {
            var client = try RawHTTPClient(port: port)
            let answer = try client.request("GET", path)
            self.port = port
            self.path = path
            tag = try #require(answer["etag"])
            date = try #require(answer["last-modified"])
        }
    }

    @TaskLocal fileprivate static var running: ServersWithOneFile?

    /// Those of the suite.
    static var current: ServersWithOneFile {
        get throws { try #require(running) }
    }

    let gifreel: Server
    let nginx: Server
}

/// Runs both servers for all tests of a suite, and stops them afterwards.
struct ServersWithOneFileTrait: SuiteTrait, TestScoping {
    func provideScope(for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void) async throws {
        let gifreel = try GifreelProcess()
        defer { gifreel.kill() }
        let made = try gifreel.request("POST", "/mp4", body: GIFBuilder.noise(frames: 10, width: 64, height: 64))
        // Ranges of the tests end in the file and behind it.
        try #require(made.status == 200 && made.body.count > 1000)
        let path = try #require(made["content-location"])
        let nginx = try await NginxServer(serving: made.body)
        defer { nginx.stop() }
        let servers = ServersWithOneFile(
            gifreel: try .init(port: gifreel.port, path: path), nginx: try .init(port: nginx.port, path: nginx.path))
        try await ServersWithOneFile.$running.withValue(servers) { try await body() }
    }
}

extension Trait where Self == ServersWithOneFileTrait {
    /// A Gifreel and an nginx with the same bytes for the tests of a suite.
    static var serversWithOneFile: Self { Self() }
}

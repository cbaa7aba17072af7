import TestSupport
import Testing

/// Runs one server for all tests of a suite, and stops it afterwards.
struct S3ServerTrait: SuiteTrait, TestScoping {
    @TaskLocal fileprivate static var running: S3Server?

    let kind: S3Server.Kind

    func provideScope(for test: Test, testCase: Test.Case?, performing body: @Sendable () async throws -> Void) async throws {
        let server = try S3Server(kind)
        defer { server.stop() }
        try await Self.$running.withValue(server) { try await body() }
    }
}

extension Trait where Self == S3ServerTrait {
    /// A real server for the tests of a suite.
    static var s3Server: S3ServerTrait { S3ServerTrait(kind: .chosen) }

    static func s3Server(_ kind: S3Server.Kind) -> S3ServerTrait { S3ServerTrait(kind: kind) }
}

extension S3Server {
    /// The server of the suite.
    static var current: S3Server {
        get throws { try #require(S3ServerTrait.running) }
    }
}

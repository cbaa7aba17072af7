import CLinux
import Glibc
import TestSupport
import Testing

@testable import HTTP

/// The scheduling policy of threads.
@Suite("Threads have the scheduling policy of their load") struct SchedulingTests {
    private static let normal = "0"
    private static let batch = "3"

    /// Answers with the scheduling policy of the loop's thread, at `/work` after 20 ms of work.
    private static let handler = ClosureHandler { request in
        let end = clinux_thread_cpu_time() + (request.target == "/work" ? 20_000_000 : 0)
        while clinux_thread_cpu_time() < end {}
        return .now(HTTPResponse(status: 200, contentType: "text/plain", text: "\(sched_getscheduler(0))"))
    }

    private static func policy(_ client: RawClient, _ target: String) throws -> String {
        try client.request("GET \(target) HTTP/1.1\r\nHost: h\r\n\r\n").text
    }

    private static func configure(_ configuration: inout HTTPServerConfiguration) {
        configuration.port = 0
        configuration.threads = 1
        // Deadlines are checked every 200 ms.
        configuration.idleTimeout = .milliseconds(1600)
        configuration.usesSocketActivation = false
    }

    @Test func busyLoopIsScheduledAsBatch() async throws {
        try await withServer(Self.handler, configure: Self.configure) { _, port in
            try await onThread {
                var client = try RawClient(port: port)
                #expect(try Self.policy(client, "/") == Self.normal)
                let end = ContinuousClock.now + .seconds(40)
                while try Self.policy(client, "/work") != Self.batch { try #require(ContinuousClock.now < end) }
                // An idle connection is closed when its deadline is checked. These checks also notice that the loop is idle.
                #expect(client.isClosed())
                client = try RawClient(port: port)
                #expect(try Self.policy(client, "/") == Self.normal)
            }
        }
    }

    @Test func logThreadIsScheduledAsBatch() async throws {
        struct Observer: HTTPObserver {
            let policies: Shared<[Int32]>

            func requestsFinished(_ batch: HTTPAccessBatch) { policies.update { $0.append(sched_getscheduler(0)) } }
        }
        let policies = Shared<[Int32]>([])
        try await withServer(Self.handler, observer: Observer(policies: policies), configure: Self.configure) { _, port in
            let own = try await onThread {
                _ = try Self.policy(try RawClient(port: port), "/")
                return "\(sched_getscheduler(0))"
            }
            #expect(own == Self.normal)
            try await policies.wait { !$0.isEmpty }
            #expect(policies.value.map { "\($0)" } == [Self.batch])
        }
    }

    @Test func chosenSchedulingPolicyIsKept() async throws {
        var configuration = HTTPServerConfiguration()
        Self.configure(&configuration)
        let server = HTTPServer(configuration: configuration, handler: Self.handler)
        try await onThread {
            // The loop's thread inherits it.
            try #require(clinux_use_batch_scheduling(1) == 0)
            try server.start()
            let port = server.port ?? 0
            var client = try RawClient(port: port)
            for _ in 0..<20 { #expect(try Self.policy(client, "/work") == Self.batch) }
            #expect(client.isClosed())
            client = try RawClient(port: port)
            #expect(try Self.policy(client, "/") == Self.batch)
        }
        await server.stop()
    }
}

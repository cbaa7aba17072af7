import Fetch
import Foundation
import SystemIO
import TestSupport
import Testing

@Suite("A fetcher is reconfigured while it runs") struct ReconfigurationTests {
    @Test func newLimitsApplyToFetchesThatStartAfterwards() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.large(1000)))
            _ = try await fetcher.source(origin.url("/a.gif"))
            fetcher.reconfigure(try configuration { $0.maxBytes = 999 })
            await #expect(throws: FetchError.tooLarge(limit: 999, declared: 1000)) {
                try await fetcher.source(origin.url("/a.gif"))
            }
            fetcher.reconfigure(try configuration { $0.userAgent = "other/1" })
            #expect(try await fetcher.source(origin.url("/a.gif")).count == 1000)
            #expect(origin.requests.last?.headers["user-agent"] == "other/1")
        }
    }

    @Test func requestInProgressKeepsTheSettingsItStartedWith() async throws {
        try await withOrigin { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/a.gif", LoopbackAnswer.ok(TestGIF.large(1000)).after(gate))
            let fetch = Task { try await fetcher.source(origin.url("/a.gif")).count }
            try await waitUntil("the request") { origin.count("/a.gif") == 1 }
            fetcher.reconfigure(
                try configuration {
                    $0.maxBytes = 100
                    $0.allow = []
                })
            gate.open()
            #expect(try await fetch.value == 1000)
            await #expect(throws: FetchError.notAllowed(.pattern)) { try await fetcher.source(origin.url("/a.gif")) }
        }
    }

    @Test func redirectIsCheckedAgainstTheNewPolicy() async throws {
        try await withOrigin { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/a.gif", LoopbackAnswer.redirect(to: "/b.gif").after(gate))
            origin.on("/b.gif", .ok(TestGIF.dot))
            let fetch = Task { try await fetcher.failure(origin.url("/a.gif")) }
            try await waitUntil("the request") { origin.count("/a.gif") == 1 }
            fetcher.reconfigure(try configuration { $0.allow = [try #require(SourcePattern("127.0.0.1/a.gif"))] })
            gate.open()
            #expect(try await fetch.value == .notAllowed(.redirect(host: "127.0.0.1")))
            #expect(origin.count("/b.gif") == 0)
        }
    }

    @Test func queuedFetchIsCheckedAgainstTheNewPolicy() async throws {
        try await withOrigin({ $0.concurrency = 1 }) { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/held.gif", LoopbackAnswer.ok(TestGIF.dot).after(gate))
            let held = Task { try await fetcher.failure(origin.url("/held.gif")) }
            try await waitUntil("the request") { origin.count("/held.gif") == 1 }
            let queued = Task { try await fetcher.failure(origin.url("/a.gif")) }
            try await waitUntil("a fetch that waits") { fetcher.counters().waiting == 1 }
            fetcher.reconfigure(
                try configuration {
                    $0.concurrency = 1
                    $0.allow = [try #require(SourcePattern("127.0.0.1/held.gif"))]
                })
            gate.open()
            #expect(try await held.value == nil)
            #expect(try await queued.value == .notAllowed(.pattern))
            #expect(origin.count("/a.gif") == 0)
        }
    }

    @Test func higherConcurrencyStartsQueuedFetchesAtOnce() async throws {
        try await withOrigin({ $0.concurrency = 1 }) { origin, fetcher in
            origin.on("/hang.gif", LoopbackAnswer(steps: [.hang]))
            origin.on("/a.gif", .ok(TestGIF.dot))
            let held = Task { try await fetcher.failure(origin.url("/hang.gif")) }
            try await waitUntil("the request") { origin.count("/hang.gif") == 1 }
            let queued = Task { try await fetcher.source(origin.url("/a.gif")).count }
            try await waitUntil("a fetch that waits") { fetcher.counters().waiting == 1 }
            fetcher.reconfigure(try configuration { $0.concurrency = 2 })
            #expect(try await queued.value == TestGIF.dot.count)
            held.cancel()
            #expect(try await held.value == .cancelled)
        }
    }

    @Test func lowerConcurrencyHoldsNewFetchesBack() async throws {
        try await withOrigin { origin, fetcher in
            let gate = try LoopbackGate()
            origin.on("/a.gif", LoopbackAnswer.ok(TestGIF.dot).after(gate))
            let first = (0..<2).map { _ in Task { try await fetcher.failure(origin.url("/a.gif")) } }
            try await waitUntil("two requests") { origin.count("/a.gif") == 2 }
            fetcher.reconfigure(try configuration { $0.concurrency = 1 })
            let third = Task { try await fetcher.failure(origin.url("/a.gif")) }
            try await waitUntil("a fetch that waits") { fetcher.counters().waiting == 1 }
            #expect(fetcher.counters().active == 2)
            gate.open()
            for task in first + [third] { #expect(try await task.value == nil) }
        }
    }

    @Test func countersAndConnectionsOutliveAReconfiguration() async throws {
        try await withOrigin { origin, fetcher in
            origin.on("/a.gif", .ok(TestGIF.dot))
            for round in 1...3 {
                _ = try await fetcher.source(origin.url("/a.gif"))
                #expect(fetcher.counters().bytes == round * TestGIF.dot.count)
                fetcher.reconfigure(try configuration { $0.maxRedirects = round })
            }
            #expect(fetcher.counters().connections == 1)
            #expect(origin.connections == 1)
        }
    }

    @Test func listenersOfThisProcessStayForbidden() async throws {
        try await withOrigin { origin, fetcher in
            fetcher.avoid([(.v4(0x7f00_0001), origin.port)])
            fetcher.reconfigure(try configuration())
            await #expect(throws: FetchError.notAllowed(.address(.itself))) { try await fetcher.source(origin.url("/a.gif")) }
            #expect(origin.connections == 0)
        }
    }

    @Test func reconfiguringAFetcherThatWasShutDownDoesNothing() async throws {
        try await withOrigin { origin, fetcher in
            fetcher.shutdown()
            fetcher.reconfigure(try configuration())
            await #expect(throws: FetchError.closed) { try await fetcher.source(origin.url("/a.gif")) }
        }
    }

    /// In a process of its own, since the threads of a process belong to all tests.
    @Test func oneThreadServesEveryConfiguration() async throws {
        await #expect(processExitsWith: .success) {
            try await withOrigin { origin, fetcher in
                origin.on("/a.gif", .ok(TestGIF.dot))
                for round in 1...4 {
                    fetcher.reconfigure(try configuration { $0.maxRedirects = round })
                    _ = try await fetcher.source(origin.url("/a.gif"))
                    try #require(try fetchThreads() == 1)
                }
            }
        }
    }
}

/// A configuration that allows fetches from the tests' origins.
private func configuration(
    _ change: (inout FetchConfiguration) throws -> Void = { _ in }
) throws -> FetchConfiguration {
    var configuration = FetchConfiguration()
    configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
    configuration.ports = .all
    try change(&configuration)
    return configuration
}

/// The number of this process's threads that drive transfers.
private func fetchThreads() throws -> Int {
    let tasks = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")
    // A thread may end between the listing and the reading of its name.
    let names = tasks.compactMap { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
    return names.count { $0 == "fetch\n" }
}

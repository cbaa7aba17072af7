import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Faults between the store and the server stay within their bounds", .s3Server) struct FaultTests {
    /// A rendition that is in the bucket.
    private func stored(_ fixture: StoreFixture) async throws -> TestRendition {
        let rendition = try TestRendition(1, count: 200_000)
        let store = try fixture.store(queue: "writer")
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        store.close()
        return rendition
    }

    @Test(arguments: [FaultProxy.Failure.close, .reset, .garbage(Array("garbage".utf8))], [0, 100, 100_000])
    func aResponseThatIsCutOrDamagedIsAskedForAgain(_ failure: FaultProxy.Failure, _ count: Int) async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        let store = try fixture.store()
        fixture.proxy.faults = .init(responses: .init(failure: failure, after: count), failureLimit: 1)
        #expect(try await store.has(rendition))
        #expect(store.statistics.retries <= 1)
        // The proxy fails each time: the store gives up.
        fixture.proxy.faults = .init(responses: .init(failure: failure, after: count))
        let error = await storeError { _ = try await store.has(rendition) }
        #expect(["interrupted", "invalid_response", "unreachable"].contains(error?.label))
        #expect(fixture.proxy.failures >= 3)
    }

    @Test func aRequestThatIsCutIsSentAgain() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(2, count: 500_000)
        fixture.proxy.faults = .init(requests: .init(failure: .reset, after: 300_000), failureLimit: 2)
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        #expect(fixture.proxy.failures == 2)
        #expect(try await store.has(rendition))
    }

    @Test func connectionsThatBrokeWhileIdleAreReplaced() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        let store = try fixture.store()
        for _ in 0..<3 {
            #expect(try await store.has(rendition))
            fixture.proxy.closeConnections()
        }
        #expect(store.statistics.failures.isEmpty)
    }

    @Test func aServerThatDoesNotAnswerCostsTheDeadlineAndNotMore() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        let store = try fixture.store { $0.lookupTimeout = .milliseconds(250) }
        for failure in [FaultProxy.Faults(requests: .init(failure: .stall)), .delay(.seconds(600))] {
            fixture.proxy.faults = failure
            let start = ContinuousClock.now
            let error = await storeError { _ = try await store.has(rendition) }
            let elapsed = ContinuousClock.now - start
            #expect(error == .timedOut)
            #expect(elapsed >= .milliseconds(240) && elapsed < .seconds(5))
            fixture.proxy.closeConnections()
        }
    }

    @Test func fiftyMillisecondsOfDelayAreNoOutage() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        fixture.proxy.faults = .delay(.milliseconds(50))
        let store = try fixture.store()
        #expect(try await store.has(rendition))
        #expect(store.statistics.breaker == .closed && fixture.reported.isEmpty)
    }

    @Test func waitingForAConnectionIsNoOutage() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        fixture.proxy.faults = .delay(.milliseconds(100))
        // Each request takes at least a fifth of what it may take, and all of them together take far more.
        let store = try fixture.store {
            $0.connections = 1
            $0.lookupTimeout = .seconds(1)
        }
        let errors = await withTaskGroup(of: StoreError?.self) { group in
            for _ in 0..<40 { group.addTask { await storeError { _ = try await store.has(rendition) } } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        let refused = errors.filter { if case .exhausted? = $0 { true } else { false } }
        #expect(refused.count > 0 && errors.filter { $0 == nil }.count > 0 && !errors.contains(.suspended))
        #expect(store.statistics.breaker == .closed && fixture.reported.isEmpty)
        // The connection is free again.
        #expect(try await store.has(rendition))
    }

    @Test func theBreakerOpensProbesAndClosesWithOneReportPerChange() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try await stored(fixture)
        let time = Mutex(Duration.zero)
        let store = try fixture.store(queue: nil, time: TimeSource(now: { time.withLock { $0 } })) {
            $0.suspension = .seconds(1)
            $0.longestSuspension = .seconds(2)
        }
        func error() async -> StoreError? { await storeError { _ = try await store.has(rendition) } }

        fixture.proxy.faults = .refusing
        for _ in 0..<3 { #expect(await error()?.label == "unreachable") }
        #expect(store.statistics.breaker == .open)
        let retries = store.statistics.retries
        #expect(await error() == .suspended)
        time.withLock { $0 += .seconds(1) }
        #expect(store.statistics.breaker == .halfOpen)
        #expect(await error()?.label == "unreachable")
        #expect(await error() == .suspended)
        fixture.proxy.faults = .none
        time.withLock { $0 += .milliseconds(1999) }
        #expect(await error() == .suspended)
        time.withLock { $0 += .milliseconds(1) }
        #expect(try await store.has(rendition))
        #expect(store.statistics.breaker == .closed)
        #expect(fixture.reported.count == 2)
        guard case .suspended(let cause) = fixture.reported.first else {
            Issue.record("\(fixture.reported)")
            return
        }
        #expect(cause.label == "unreachable" && fixture.reported.last == .resumed)
        #expect(retries > 0)
    }

    @Test func aWrongSecretSuspendsTheStoreAndKeepsTheQueue() async throws {
        if S3Server.Kind.chosen == .moto { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let rendition = try TestRendition(1)
        let store = try fixture.store { $0.bucket = try fixture.bucket(secretKey: "wrong") }
        try await store.store(rendition)
        try await waitUntil("the suspension") { () async in !fixture.reported.isEmpty }
        #expect(fixture.reported.first == .suspended(.denied(code: "SignatureDoesNotMatch")))
        store.close()
        #expect(try fixture.queueFiles().count == 1)
        let repaired = try fixture.store()
        #expect(await repaired.drain(within: .seconds(60)))
        #expect(try await repaired.has(rendition))
    }
}

import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Web

@Suite("The number of statuses is bounded, and each is kept for ten minutes after its end", .timeLimit(.minutes(10)))
struct StatusRegistryTests {
    /// A clock that a test sets.
    private final class Seconds: Sendable {
        let value = Mutex(1000)

        var clock: TimeSource {
            TimeSource(
                unixSeconds: { 0 }, monotonicNanoseconds: { [self] in UInt64(value.withLock { $0 }) * 1_000_000_000 })
        }

        func pass(_ seconds: Int) { value.withLock { $0 += seconds } }
    }

    private let time = Seconds()

    private func client(_ number: Int) throws -> ClientNetwork {
        ClientNetwork(try #require(IPAddress("192.0.2.\(number)")))
    }

    /// Ends the work of a request.
    private func finish(_ request: AsyncRequest, in registry: StatusRegistry) async {
        await withCheckedContinuation { continuation in
            request.start { _ in
                .done(url: "/x", nil)
            } ended: {
                registry.ended(request)
                continuation.resume()
            }
        }
    }

    @Test func aStatusIsForgottenTenMinutesAfterItsEnd() async throws {
        let registry = StatusRegistry(limit: 8, clock: time.clock)
        let request = try registry.open(nil)
        time.pass(100_000)
        #expect(registry.find(request.id) === request && registry.counts == (1, 1))
        await finish(request, in: registry)
        #expect(registry.counts == (1, 0))
        time.pass(599)
        #expect(registry.find(request.id) === request)
        time.pass(1)
        #expect(registry.find(request.id) == nil && registry.counts == (0, 0))
    }

    @Test func aFullRegistryNamesTheTimeAtWhichTheNextStatusIsForgotten() async throws {
        let registry = StatusRegistry(limit: 4, clock: time.clock)
        let requests = try (1...4).map { try registry.open(try client($0)) }
        #expect(throws: Problem(503, "overloaded", Self.full, retryAfter: 5)) { try registry.open(try client(5)) }
        await finish(requests[2], in: registry)
        time.pass(60)
        #expect(throws: Problem(503, "overloaded", Self.full, retryAfter: 541)) { try registry.open(try client(5)) }
        time.pass(540)
        let next = try registry.open(try client(5))
        #expect(Set((requests + [next]).map(\.id)).count == 5)
        registry.setLimit(5)
        #expect { try registry.open(try client(5)) } throws: { ($0 as? Problem)?.code == "rate_limited" }
        _ = try registry.open(try client(6))
        registry.remove(next)
        _ = try registry.open(try client(5))
    }

    private static let full = "Too many asynchronous requests are in progress or have just ended."

    @Test func closingLeavesAllWorkAndRefusesMore() async throws {
        let registry = StatusRegistry(limit: 8, clock: time.clock)
        let request = try registry.open(nil)
        let cancelled = Mutex(false)
        request.start { _ in
            await withTaskCancellationHandler {
                while !Task.isCancelled { await Task.yield() }
            } onCancel: {
                cancelled.withLock { $0 = true }
            }
            return .cancelled
        } ended: {
            Issue.record("the work ended by itself")
        }
        registry.close()
        await request.awaitEnd(within: .seconds(3600))
        #expect(StatusDocument(request).isFinal)
        try await waitUntil("the cancellation of the work") { cancelled.withLock { $0 } }
        #expect(throws: Problem.draining) { try registry.open(nil) }
    }

    @Test func waitingEndsWithTheIntervalTheTaskOrTheWork() async throws {
        let request = try StatusRegistry(limit: 1, clock: time.clock).open(nil)
        await request.awaitEnd(within: .milliseconds(1))
        let waiting = Task { await request.awaitEnd(within: .seconds(3600)) }
        waiting.cancel()
        await waiting.value
        let other = Task { await request.awaitEnd(within: .seconds(3600)) }
        request.cancel()
        await other.value
    }

    @Test func fourStreamsFollowAStatusOfAnotherNode() throws {
        let registry = StatusRegistry(limit: 1, clock: time.clock)
        var permits = try (0..<4).map { _ in try #require(registry.openSharedStream(of: 1, for: nil)) }
        #expect(registry.openSharedStream(of: 1, for: nil) == nil)
        permits.append(try #require(registry.openSharedStream(of: 2, for: nil)))
        #expect(registry.sharedStreams == 5)
        permits.removeFirst()
        #expect(registry.openSharedStream(of: 1, for: nil) != nil)
        permits.removeAll()
        #expect(registry.sharedStreams == 0)
        registry.close()
        #expect(registry.openSharedStream(of: 1, for: nil) == nil)
    }

    @Test func aClientLeavesStreamsOfOtherNodesStatusesToOthers() throws {
        let registry = StatusRegistry(limit: 1, clock: time.clock)
        func open(_ number: Int, _ client: ClientNetwork) -> StreamPermit? {
            registry.openSharedStream(of: UInt128(number / 4), for: client)
        }
        let (first, second) = (try client(1), try client(2))
        var permits = try (0..<64).map { try #require(open($0, first)) }
        #expect(open(64, first) == nil)
        permits.append(try #require(open(64, second)))
        permits.removeFirst()
        #expect(open(65, first) != nil)
    }

    @Test func closingEndsTheWaitOfStreams() async {
        let registry = StatusRegistry(limit: 1, clock: time.clock)
        await registry.awaitClose(within: .milliseconds(1))
        #expect(!registry.isClosed)
        let waiting = Task { await registry.awaitClose(within: .seconds(3600)) }
        registry.close()
        await waiting.value
        // A later wait does not begin.
        await registry.awaitClose(within: .seconds(3600))
        #expect(registry.isClosed)
    }

    @Test func anIdHas128RandomBits() throws {
        let registry = StatusRegistry(limit: 256, clock: time.clock)
        var (ones, all) = (UInt128.zero, UInt128.max)
        for _ in 0..<64 {
            let request = try registry.open(nil)
            #expect(request.path.count == "/status/".count + 32)
            ones |= request.id
            all &= request.id
        }
        #expect(ones == .max && all == 0)
    }
}

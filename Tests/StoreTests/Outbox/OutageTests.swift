import Foundation
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Writes wait for the end of an outage", .s3Server) struct OutageTests {
    @Test func theQueueIsSentOnceTheServerReturns() async throws {
        let fixture = try StoreFixture(faults: .refusing)
        defer { fixture.stop() }
        let store = try fixture.store()
        let renditions = try (1...5).map { try TestRendition($0) }
        for rendition in renditions { try await store.store(rendition) }
        try await waitUntil("the suspension") { () async in !fixture.reported.isEmpty }
        try await waitUntil("the count of what waits") { () async in
            store.statistics.queuedWrites == 5 && store.statistics.queuedBytes == 25_000
        }
        fixture.proxy.faults = .none
        #expect(await store.drain(within: .seconds(60)))
        for rendition in renditions { #expect(try await store.has(rendition)) }
        #expect(fixture.reported.last == .resumed)
        #expect(store.statistics.droppedWrites == 0)
    }

    /// A proxy that has no route to the store for a while answers itself.
    @Test func theAnswerOfAProxyWithoutARouteLosesNoWrite() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let (stored, removed) = (try TestRendition(1), try TestRendition(2))
        try await store.store(removed)
        #expect(await store.drain(within: .seconds(60)))
        let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 10\r\n\r\nnot found\n"
        fixture.proxy.faults = FaultProxy.Faults(responses: FaultProxy.Stream(failure: .garbage(Array(answer.utf8))))
        try await store.store(stored)
        try store.remove(removed)
        try await waitUntil("the suspension") { () async in !fixture.reported.isEmpty }
        fixture.proxy.faults = .none
        #expect(await store.drain(within: .seconds(60)))
        #expect(try await store.has(stored))
        #expect(try await !store.has(removed))
        #expect(store.statistics.droppedWrites == 0)
    }

    @Test func aServerThatIsKilledAndStartedAgainHasAllOfThem() async throws {
        // moto keeps buckets in memory, and rclone keeps metadata there.
        if [.moto, .rclone].contains(S3Server.Kind.chosen) { return }
        let server = try S3Server()
        defer { server.stop() }
        let fixture = try StoreFixture(server)
        defer { fixture.stop() }
        let store = try fixture.store()
        let (before, during) = (try TestRendition(1), try TestRendition(2))
        try await store.store(before)
        #expect(await store.drain(within: .seconds(60)))
        server.stop()
        try await store.store(during)
        #expect(await storeError { _ = try await store.has(before) } != nil)
        try server.restart()
        #expect(await store.drain(within: .seconds(60)))
        #expect(try await store.has(during))
        #expect(try await store.has(before))
    }

    @Test func aQueueOnDiskIsSentByTheNextProcess() async throws {
        let fixture = try StoreFixture(faults: .refusing)
        defer { fixture.stop() }
        let store = try fixture.store()
        let (rendition, removed) = (try TestRendition(1), try TestRendition(2))
        try await store.store(rendition)
        try await store.store(removed)
        try store.remove(removed)
        store.close()
        fixture.proxy.faults = .none
        let next = try fixture.store()
        #expect(await next.drain(within: .seconds(60)))
        #expect(try await next.has(rendition))
        #expect(try await !next.has(removed))
        #expect(next.statistics.calls[.put]?.count == 1 && next.statistics.calls[.delete]?.count == 1)
        #expect(try fixture.queueFiles().isEmpty)
    }

    /// A kill leaves the directory as it is at that moment: here between the record of a write and its end.
    @Test func aProcessThatIsKilledBetweenRecordAndUploadLosesNothing() async throws {
        let fixture = try StoreFixture(faults: .init(requests: .init(failure: .stall)))
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        try await store.store(rendition)
        try await waitUntil("the upload to begin") { () async in fixture.proxy.failures > 0 }
        try FileManager.default.copyItem(
            at: fixture.folder.appendingPathComponent("queue"), to: fixture.folder.appendingPathComponent("killed"))
        store.close()
        fixture.proxy.faults = .none
        let next = try fixture.store(queue: "killed")
        #expect(await next.drain(within: .seconds(60)))
        #expect(try await next.has(rendition))
    }

    @Test func aDeletionDuringAnOutageHidesTheRenditionAtOnce() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        fixture.proxy.faults = .refusing
        fixture.proxy.closeConnections()
        try store.remove(rendition)
        #expect(try await !store.has(rendition))
        fixture.proxy.faults = .none
        #expect(await store.drain(within: .seconds(60)))
        #expect(try await !store.has(rendition))
    }

    @Test func aDeletionDuringAnUploadWins() async throws {
        let fixture = try StoreFixture(faults: .delay(.milliseconds(300)))
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        try await store.store(rendition)
        try await waitUntil("the upload to begin") { () async in fixture.proxy.connections > 0 }
        try store.remove(rendition)
        #expect(await store.drain(within: .seconds(60)))
        fixture.proxy.faults = .none
        #expect(try await !store.has(rendition))
    }

    @Test func aWriteIsWaitedForWhileTheStoreWorksOnly() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        // The clock stands still, so that the breaker stays open.
        let store = try fixture.store(time: TimeSource(now: { .zero })) {
            $0.outagesBeforeSuspension = 1
        }
        func storeAndWait(_ seed: UInt64, within limit: Duration) async throws -> Bool {
            let rendition = try TestRendition(seed)
            return try await store.store(rendition, within: limit)
        }
        #expect(try await storeAndWait(1, within: .seconds(60)))
        fixture.proxy.faults = .init(requests: .init(failure: .stall))
        #expect(try await !storeAndWait(2, within: .milliseconds(50)))
        fixture.proxy.faults = .refusing
        fixture.proxy.closeConnections()
        try await waitUntil("the suspension") { () async in store.statistics.breaker == .open }
        #expect(try await !storeAndWait(3, within: .seconds(3600)))
        try await waitUntil("the count of what waits") { () async in store.statistics.queuedWrites == 2 }
    }

    @Test func anEntryThatCanNeverBeSentIsDropped() async throws {
        // moto does not check digests.
        if S3Server.Kind.chosen == .moto { return }
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let (bad, good) = (try TestRendition(1), try TestRendition(2))
        // The file is shorter than its record.
        _ = try await store.store(bad, TestRendition(3, count: 10).file(), within: .zero)
        try await store.store(good)
        #expect(await store.drain(within: .seconds(60)))
        #expect(store.statistics.droppedWrites == 1)
        #expect(fixture.reported.map(\.isProblem) == [true])
        #expect(try await !store.has(bad))
        #expect(try await store.has(good))
    }
}

import Digests
import Foundation
import HTTPClient
import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("Renditions are shared through a bucket", .s3Server) struct SharedStoreTests {
    @Test func aRenditionStoredByOneNodeIsReceivedByAnother() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other"))
        let rendition = try TestRendition(1)
        #expect(try await !other.has(rendition))
        try await one.store(rendition)
        #expect(await one.drain(within: .seconds(60)))
        #expect(try await other.has(rendition))
        let statistics = other.statistics
        #expect(statistics.hits == 1 && statistics.misses == 1 && statistics.bytesReceived == 5000)
        #expect(statistics.calls[.get]?.count == 2)
        #expect(statistics.calls[.get].map { $0.time > .zero } == true)
        #expect(one.statistics.calls[.put]?.count == 1 && one.statistics.bytesSent == 5000)
        try await waitUntil("the count of what waits") { () async in one.statistics.queuedWrites == 0 }
        #expect(try fixture.queueFiles().isEmpty)
    }

    @Test func aRenditionIsReceivedIntoAFileOfTheCaller() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let (rendition, longer) = (try TestRendition(1), try TestRendition(2, count: 9000))
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        let file = try longer.file(in: fixture.folder)
        #expect(try await store.fetch(rendition.name, into: file, maxLength: 5000) == rendition.record)
        #expect(try file.readAll() == rendition.bytes)
        await #expect(throws: StoreError.tooLarge(limit: 4999)) {
            _ = try await store.fetch(rendition.name, into: file, maxLength: 4999)
        }
    }

    @Test func theObjectIsTheRenditionItself() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        let id = rendition.name.id.description
        let object = try await fixture.withClient {
            try await $0.get(
                "\(fixture.prefix)/\(id.prefix(2))/\(id).mp4", to: .memory(limit: 5000), timeout: .seconds(20))
        }
        #expect(object?.body == rendition.bytes)
        #expect(object.flatMap { StoredRecord(fields: $0.metadata) } == rendition.record)
    }

    @Test func longFactsTravelInAnObjectOfTheirOwn() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other"))
        let rendition = try TestRendition(1, facts: [UInt8](repeating: 7, count: ObjectRecord.maxFactsCount))
        try await one.store(rendition)
        #expect(await one.drain(within: .seconds(60)))
        #expect(try await other.has(rendition))
        try one.remove(rendition)
        #expect(await one.drain(within: .seconds(60)))
        let left = try await fixture.withClient { try await $0.list(prefix: fixture.prefix, token: nil, timeout: .seconds(20)) }
        #expect(left.entries.isEmpty)
    }

    @Test func otherBytesUnderTheNameAreDamage() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let (rendition, other) = (try TestRendition(1), try TestRendition(2))
        let key = try fixture.key(rendition.name)
        for (bytes, cause) in [
            (other.bytes, "its SHA-256 does not match"),
            (Array(rendition.bytes.dropLast()), "it has 4999 bytes in place of 5000"),
        ] {
            try await fixture.withClient {
                try await $0.put(
                    key,
                    S3Client.Upload(
                        body: .bytes(bytes), digest: SHA256.hash(bytes), mediaType: "video/mp4",
                        metadata: rendition.record.fields), timeout: .seconds(20))
            }
            await #expect(throws: StoreError.damaged(cause: cause)) { _ = try await store.has(rendition) }
        }
        #expect(store.statistics.failures == ["damaged": 2])
        // The server works: damage does not open the breaker, and a new upload repairs it.
        #expect(store.statistics.breaker == .closed)
        try await store.store(rendition)
        #expect(await store.drain(within: .seconds(60)))
        #expect(try await store.has(rendition))
    }

    @Test func objectsOfOtherProgramsAreNotFound() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        try await fixture.withClient {
            try await $0.put(
                fixture.key(rendition.name),
                S3Client.Upload(body: .bytes(rendition.bytes), digest: rendition.record.digest, mediaType: "video/mp4"),
                timeout: .seconds(20))
        }
        #expect(try await !store.has(rendition))
    }

    @Test func aDamagedRecordIsDamage() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let rendition = try TestRendition(1)
        var fields = rendition.record.fields
        fields["gifreel-created"] = "7"
        try await fixture.withClient { [fields] in
            try await $0.put(
                fixture.key(rendition.name),
                S3Client.Upload(
                    body: .bytes(rendition.bytes), digest: rendition.record.digest, mediaType: "video/mp4", metadata: fields),
                timeout: .seconds(20))
        }
        await #expect(throws: StoreError.damaged(cause: "its record cannot be read")) { _ = try await store.has(rendition) }
    }

    @Test func aRemovedRenditionIsNotFoundAndItsObjectIsDeleted() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other"))
        let rendition = try TestRendition(1)
        try await one.store(rendition)
        #expect(await one.drain(within: .seconds(60)))
        try one.remove(rendition)
        #expect(try await !one.has(rendition))
        #expect(await one.drain(within: .seconds(60)))
        #expect(try await !other.has(rendition))
        #expect(one.statistics.calls[.delete]?.count == 1)
    }

    @Test func aRenditionWhoseDeletionIsSentDuringItsLookUpIsNotFound() async throws {
        let fixture = try StoreFixture()
        let (rendition, gate) = (try TestRendition(1), try LoopbackGate())
        let path = "/b/\(try fixture.key(rendition.name))"
        let fields = rendition.record.fields.map { "x-amz-meta-\($0.key): \($0.value)" }
        let origin = try LoopbackOrigin([path: { _ in .ok(rendition.bytes, fields).after(gate) }])
        defer { origin.stop() }
        defer { fixture.stop() }
        let store = try fixture.store { configuration in
            let endpoint = try S3Endpoint(url: origin.url(""), region: "us-east-1", usesPathStyle: true)
            configuration.bucket = try S3Bucket(endpoint: endpoint, name: "b", keys: .none)
            configuration.outbox.uploads = 0
        }
        try store.remove(rendition)
        async let isFound = store.has(rendition)
        try await waitUntil("the lookup") { origin.count(path) == 1 }
        let outbox = try #require(store.outbox)
        outbox.startSending(concurrency: 1) { _, _ in }
        #expect(await outbox.awaitDeletion(of: rendition.name.id, within: .seconds(60)))
        #expect(outbox.deletion(of: rendition.name.id) == nil)
        gate.open()
        #expect(try await !isFound)
    }

    @Test func aRemovalUpToATimeDeletesOlderObjectsOnly() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other"))
        // One record is in metadata, the other one beside its object.
        let old = try TestRendition(1, began: 100)
        let new = try TestRendition(2, facts: [UInt8](repeating: 7, count: 4000), began: 101)
        for rendition in [old, new] { try await one.store(rendition) }
        #expect(await one.drain(within: .seconds(60)))
        for rendition in [old, new] {
            let id = rendition.name.id
            let outbox = try #require(other.outbox)
            try outbox.ledger.write(.full) { try outbox.addDeletion(of: id, until: 100, in: $0) }
            outbox.sendDeletion(of: id)
            // Also while the deletion waits.
            #expect(try await other.has(rendition) == (rendition.record.began > 100))
        }
        #expect(await other.drain(within: .seconds(60)))
        #expect(try await !one.has(old))
        #expect(try await one.has(new))
    }

    @Test func aRecordOfAnOlderVersionIsComparedByItsPublication() throws {
        let record = try TestRendition(1, created: 1000, began: 0).record
        #expect(record.fields["gifreel-began"] == nil)
        // Clocks of nodes may have differed by a minute.
        #expect(record.began(until: 1_000_000) && record.began(until: 940_000) && !record.began(until: 939_999))
    }

    @Test func aRenditionThatAnUploadOfAnotherNodeBringsBackIsNotFoundAndRemovedAgain() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let old = try TestRendition(1)
        let removal = old.record.began + 3_600_000
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other", removals: [old.name.id: removal]))
        // An upload that began before the removal ends after it.
        try await one.store(old)
        #expect(await one.drain(within: .seconds(60)))
        #expect(try await !other.has(old))
        try await waitUntil("the deletion") { other.statistics.calls[.delete]?.count == 1 }
        #expect(await other.drain(within: .seconds(60)))
        #expect(try await !one.has(old))
        // The same is uploaded again, whatever the clock says that dates it.
        let new = try TestRendition(1, created: 1, began: removal + 1)
        try await one.store(new)
        #expect(await one.drain(within: .seconds(60)))
        #expect(try await other.has(new))
        #expect(other.statistics.calls[.delete]?.count == 1)
        try await waitUntil("the count of what waits") { () async in other.statistics.queuedWrites == 0 }
    }

    @Test func pruningDeletesWhatIsOldAndLeavesOtherObjects() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let store = try fixture.store()
        let renditions = try (1...4).map { try TestRendition($0) }
        for rendition in renditions { try await store.store(rendition) }
        #expect(await store.drain(within: .seconds(60)))
        let foreign = "\(fixture.prefix)/aa/notes.txt"
        try await fixture.withClient {
            try await $0.put(
                foreign, S3Client.Upload(body: .bytes([1]), digest: SHA256.hash([1]), mediaType: "text/plain"),
                timeout: .seconds(20))
        }
        let now = Int64(Date().timeIntervalSince1970)
        let none = try await store.prune(storedBefore: now - 3600)
        #expect(none.deleted == 0 && none.listed == 5)
        let seen = Recorder<PruneProgress>()
        let clock = ContinuousClock()
        let start = clock.now
        let all = try await store.prune(storedBefore: now + 3600, deletionsPerSecond: 20) { seen.add($0) }
        #expect(all.listed == 5 && all.deleted == 4 && all.bytes == 20_000)
        // The first is not delayed.
        #expect(clock.now - start >= .milliseconds(100))
        #expect(seen.values.map(\.deleted) == [0, 2, 4, 4])
        let keys = try renditions.map { try fixture.key($0.name) } + [foreign]
        #expect(all.completeThrough == keys.max())
        let rest = try await store.prune(storedBefore: now + 3600, after: keys.max())
        #expect(rest.listed == 0 && rest.completeThrough == keys.max())
        for rendition in renditions { #expect(try await !store.has(rendition)) }
        #expect(try await fixture.withClient { try await $0.head(foreign, timeout: .seconds(20)) } != nil)
    }
}

@Suite("Renditions are shared through a server that drops metadata", .s3Server(.juicefsWithoutMetadata))
struct DroppedMetadataTests {
    @Test func theRecordTravelsInAnObjectOfItsOwn() async throws {
        let fixture = try StoreFixture()
        defer { fixture.stop() }
        let (one, other) = (try fixture.store(), try fixture.store(queue: "other"))
        for seed in 1...3 {
            let rendition = try TestRendition(UInt64(seed))
            #expect(try await !other.has(rendition))
            try await one.store(rendition)
            #expect(await one.drain(within: .seconds(60)))
            #expect(try await other.has(rendition))
        }
        let first = try TestRendition(1)
        try other.remove(first)
        #expect(await other.drain(within: .seconds(60)))
        #expect(try await !one.has(first))
        let left = try await fixture.withClient { try await $0.list(prefix: fixture.prefix, token: nil, timeout: .seconds(20)) }
        #expect(left.entries.count == 4)
    }
}

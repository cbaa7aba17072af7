import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

extension CacheConfiguration {
    /// Settings of tests: no minimum of free space, and frequent housekeeping.
    static func test(_ directory: TemporaryDirectory) -> CacheConfiguration {
        var configuration = CacheConfiguration()
        configuration.directory = directory.path
        configuration.minFreeBytes = 0
        configuration.housekeepingInterval = .milliseconds(20)
        return configuration
    }
}

extension Cache {
    /// Opens a cache, which the test must close.
    static func open(_ directory: TemporaryDirectory, clock: TimeSource = .system) throws -> Cache {
        try Cache(configuration: .test(directory), clock: clock)
    }

    /// A staged file with these bytes in it.
    func staged(_ bytes: [UInt8]) throws -> StagedFile {
        let staged = try publisher.createFile(expecting: 0)
        let count = bytes.withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) }
        try #require(count == bytes.count)
        return staged
    }

    /// A file in memory with these bytes in it, because the disk refused it.
    func stageInMemory(because reason: UnstoredReason, containing bytes: [UInt8]) throws -> StagedFile {
        let staged = try stageInMemory(because: reason)
        #expect(bytes.withUnsafeBytes { write(staged.number, $0.baseAddress, $0.count) } == bytes.count)
        return staged
    }

    /// Publishes `bytes` under `url`, or as an upload for nil. The default object is named by the URL.
    @discardableResult
    func put(
        _ bytes: [UInt8], url: String?, object: ObjectID? = nil, epoch: Epoch? = nil, facts: [UInt8] = [],
        fetchedAt: Int64 = 1_700_000_000
    ) async throws -> PublishOutcome {
        let noted = epoch ?? self.epoch
        return try await publish(
            try staged(bytes), as: object ?? .test(url ?? "upload"), fileExtension: "mp4", facts: facts,
            alias: url.map { .test($0, fetchedAt: fetchedAt) }, epoch: noted)
    }

    func bytes(url: String) async throws -> [UInt8]? {
        try await alias(.test(url))?.descriptor.readAll()
    }
}

extension Cache {
    /// A purge that another node accepted at a time of the cluster's clock, in milliseconds.
    func purge(_ scope: PurgeScope, madeAt time: Int64) async throws(CacheError) -> PurgeCounts {
        try await purge([.test(scope, madeAt: time)])
    }

    /// Has the cluster's clock be a clock of the test.
    func synchronize(_ clock: ManualClock) {
        sharedClock.set(clock.now * 1000, askedAt: sharedClock.monotonic)
    }
}

extension Purge {
    /// One of another node.
    static func test(_ scope: PurgeScope, madeAt time: Int64, token: String = StagedFile.uniqueName()) -> Purge {
        Purge(scope, madeAt: time, isLocal: false, token: token, entry: "1-0")
    }
}

extension PurgeIndex {
    /// Adds a purge of this node without rows.
    func append(_ scope: PurgeScope) {
        let purge = Purge(scope, madeAt: 0, isLocal: true, token: StagedFile.uniqueName(), entry: "")
        insert(purge, epoch.number + 1, isSwept: true)
    }
}

/// The parameters that most tests leave out.
extension Cache {
    func alias(_ key: AliasKey) async -> CachedRendition? {
        (try? await rendition(for: key, countsMiss: true)) ?? nil
    }

    func object(_ id: ObjectID) async -> CachedRendition? {
        (try? await rendition(for: id, countsMiss: true)) ?? nil
    }

    func publish(
        _ staged: StagedFile, as object: ObjectID, fileExtension: String, facts: [UInt8] = [], alias: AliasRecord?,
        epoch: Epoch
    ) async throws(CacheError) -> PublishOutcome {
        try await publish(
            staged, as: object, fileExtension: fileExtension, facts: facts, alias: alias, epoch: epoch, storing: true)
    }
}

extension PublishOutcome {
    var isStored: Bool { if case .stored = self { true } else { false } }
    var isExisting: Bool { if case .existing = self { true } else { false } }
    var unstoredReason: UnstoredReason? { if case .unstored(_, let reason) = self { reason } else { nil } }
}

extension AliasKey {
    static func test(_ url: String) -> AliasKey { AliasKey(sourceURL: url, rendition: "mp4") }
}

extension AliasRecord {
    static func test(_ url: String, fetchedAt: Int64 = 1_700_000_000, freshFor: Int64? = nil) -> AliasRecord {
        AliasRecord(
            key: .test(url), sourceURL: url, rendition: "mp4", validators: Validators(etag: "\"\(url)\"", lastModified: nil),
            times: OriginTimes(fetchedAt: fetchedAt, freshFor: freshFor))
    }
}

extension ObjectID {
    static func test(_ name: String) -> ObjectID {
        ObjectID(source: SourceDigest(of: Array(name.utf8)), rendition: "mp4", encoderVersion: "1")
    }
}

extension RenditionName {
    static func test(_ name: String) -> RenditionName {
        RenditionName(
            ObjectRecord(
                id: .test(name), fileExtension: "mp4", length: 1, content: ContentDigest(digest: ObjectID.test(name).digest),
                created: 0, facts: []))
    }
}

extension SourceDigest {
    init(of bytes: [UInt8]) {
        self = bytes.withUnsafeBytes { SourceDigest(of: $0) }
    }
}

/// `count` bytes that differ from those of any other seed: a block of pseudorandom bytes, repeated.
func noise(_ count: Int, seed: UInt64) -> [UInt8] {
    var state = seed &* 0x9e37_79b9_7f4a_7c15 | 1
    let block = (0..<min(count, 1021)).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state)
    }
    var bytes: [UInt8] = []
    while bytes.count < count { bytes += block.prefix(count - bytes.count) }
    return bytes
}

/// A clock that only ``advance(_:)`` and ``setBack(_:)`` move.
final class ManualClock: Sendable {
    private let seconds: Atomic<Int64>
    private let setBackBy = Atomic<Int64>(0)

    init(_ seconds: Int64 = 1_700_000_000) {
        self.seconds = Atomic(seconds)
    }

    /// The wall clock.
    var now: Int64 { seconds.load(ordering: .relaxed) - setBackBy.load(ordering: .relaxed) }

    func advance(_ amount: Int64) {
        seconds.add(amount, ordering: .relaxed)
    }

    /// Sets the wall clock back.
    func setBack(_ amount: Int64) {
        setBackBy.add(amount, ordering: .relaxed)
    }

    var cacheClock: TimeSource {
        TimeSource(
            unixSeconds: { self.now },
            monotonicNanoseconds: { UInt64(self.seconds.load(ordering: .relaxed)) * 1_000_000_000 })
    }
}

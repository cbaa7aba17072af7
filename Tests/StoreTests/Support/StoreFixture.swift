import CLinux
import Digests
import Foundation
import HTTPClient
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Store

/// A shared store behind a proxy in front of a server, with a directory and a prefix of its own.
final class StoreFixture: Sendable {
    let proxy: FaultProxy
    let folder: URL
    let prefix: String
    private let events = Mutex<[StoreEvent]>([])
    private let open = Mutex<[SharedStore]>([])
    private let server: S3Server

    init(_ server: S3Server? = nil, faults: FaultProxy.Faults = .none) throws {
        self.server = try server ?? S3Server.current
        proxy = try FaultProxy(to: self.server.port, faults: faults)
        prefix = "test-\(UUID().uuidString)"
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(prefix)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Stops what was started. Call it at the end of each test.
    func stop() {
        let stores = open.withLock { stores in
            // Each store refers to this fixture by its events.
            defer { stores.removeAll() }
            return stores
        }
        for store in stores { store.close() }
        proxy.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    var reported: [StoreEvent] { events.withLock { $0 } }

    func bucket(secretKey: String? = nil, bucket: String? = nil, direct: Bool = false) throws -> S3Bucket {
        try S3Bucket(
            endpoint: S3Endpoint(
                url: "http://127.0.0.1:\(direct ? server.port : proxy.port)", region: "us-east-1", usesPathStyle: true),
            name: bucket ?? server.bucket,
            keys: .fixed(S3Credentials(accessKey: server.accessKey, secretKey: secretKey ?? server.secretKey)))
    }

    /// A store with a queue. Pauses are short, and the deadline of lookups is long, unless a test is about them.
    func store(
        queue: String? = "queue", time: TimeSource = .system,
        removals: [ObjectID: Int64] = [:],
        _ change: (inout SharedStoreConfiguration) throws -> Void = { _ in }
    ) throws -> SharedStore {
        let directory = folder.appendingPathComponent(queue ?? "none").path
        var configuration = try SharedStoreConfiguration(
            bucket: bucket(), prefix: prefix, timeout: .seconds(20), lookupTimeout: .seconds(20),
            outbox: OutboxConfiguration(directory: "\(directory)/outbox", maxBytes: 1 << 30))
        configuration.suspension = .milliseconds(20)
        configuration.longestSuspension = .milliseconds(50)
        configuration.fileExtensions = ["mp4", "png"]
        configuration.outbox.pause = .milliseconds(10)
        configuration.outbox.longestPause = .milliseconds(50)
        try change(&configuration)
        let ledger = try queue.map { _ in
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            return try Ledger(directory: directory, owners: [OutboxTables.owned])
        }
        let purges = PurgeIndex()
        for (number, removal) in removals.enumerated() {
            purges.insert(
                Purge(.object(removal.key), madeAt: removal.value, isLocal: false, token: "\(removal.key)", entry: ""),
                Int64(number + 1))
        }
        let store = try SharedStore(configuration, ledger: ledger, time: time, purges: purges) { event in
            self.events.withLock { $0.append(event) }
        }
        open.withLock { $0.append(store) }
        return store
    }

    /// A client for the server without the proxy, to see and change what is stored.
    func client(_ bucket: S3Bucket? = nil) throws -> (client: S3Client, http: HTTPClient) {
        let http = try HTTPClient(name: "test", limits: .init(running: 4))
        return (S3Client(http, bucket: try bucket ?? self.bucket(direct: true)), http)
    }

    /// Runs `body` with a client for the server without the proxy.
    func withClient<Value>(_ bucket: S3Bucket? = nil, _ body: (S3Client) async throws -> Value) async throws -> Value {
        let (client, http) = try client(bucket)
        defer { http.stop() }
        return try await body(client)
    }

    func key(_ name: RenditionName) throws -> String { try KeySpace(prefix: prefix).object(name) }

    /// The names of files in a queue's directory.
    func queueFiles(_ queue: String = "queue") throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.appendingPathComponent(queue).path + "/outbox").sorted()
    }
}

/// A rendition made up for a test.
struct TestRendition: Sendable {
    let name: RenditionName
    let bytes: [UInt8]
    let record: StoredRecord

    /// - Parameter seed: Renditions with different seeds have different names and bytes.
    init(
        _ seed: UInt64, count: Int = 5000, created: Int64 = 1_790_000_000, facts: [UInt8] = Array("{\"width\":480}".utf8),
        began: Int64? = nil
    ) throws {
        var numbers = SeededNumbers(seed: seed)
        var bytes = [UInt8](repeating: 0, count: count)
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: numbers.next()) }
        self.bytes = bytes
        let id = try #require(ObjectID(bytes: SHA256.hash("\(seed)".utf8)))
        name = try #require(RenditionName(id: id, fileExtension: "mp4"))
        record = try #require(
            StoredRecord(
                length: count, digest: SHA256.hash(bytes), created: created, facts: facts, began: began ?? created * 1000))
    }

    /// The bytes as a file in memory.
    func file() throws -> SharedDescriptor {
        var file = try MemoryFile(name: "test")
        try bytes.withUnsafeBytes { try file.append($0) }
        return try file.seal()
    }

    /// The bytes as a file in a folder.
    func file(in folder: URL) throws -> SharedDescriptor {
        let path = folder.appendingPathComponent("\(name)").path
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return SharedDescriptor(OwnedDescriptor(taking: try #require(Optional(open(path, O_RDWR | O_CLOEXEC)))))
    }
}

extension SharedStore {
    /// Looks a rendition up, and receives it into a file in memory.
    func fetch(
        _ name: RenditionName, maxLength: Int, within limit: Duration? = nil
    ) async throws(StoreError) -> (record: StoredRecord, file: SharedDescriptor)? {
        let file = SharedDescriptor(OwnedDescriptor(taking: clinux_memfd_create("rendition")))
        return try await fetch(name, into: file, maxLength: maxLength, within: limit).map { ($0, file) }
    }

    func drain(within limit: Duration) async -> Bool { await outbox?.drain(within: limit) ?? true }

    func store(_ rendition: TestRendition) async throws {
        _ = try await store(rendition, within: .zero)
    }

    /// Stores a rendition in a transaction of its own, and waits as ``store(_:_:_:mediaType:within:in:)`` does.
    func store(_ rendition: TestRendition, _ file: SharedDescriptor? = nil, within limit: Duration) async throws -> Bool {
        let ledger = try #require(outbox).ledger
        return await store(
            rendition.name, try file ?? rendition.file(), rendition.record, mediaType: "video/mp4", within: limit
        ) { change in
            (try? ledger.write(.normal, change)) != nil
        }
    }

    /// Removes a rendition in a transaction of its own.
    func remove(_ rendition: TestRendition) throws {
        let (outbox, id) = (try #require(outbox), rendition.name.id)
        try outbox.ledger.write(.full) { try outbox.addDeletion(of: id, until: rendition.record.began, in: $0) }
        outbox.sendDeletion(of: id)
    }

    /// Whether the store returns exactly this rendition; false where it has none.
    func has(_ rendition: TestRendition) async throws -> Bool {
        guard let found = try await fetch(rendition.name, maxLength: 1 << 30) else { return false }
        #expect(found.record == rendition.record)
        #expect(try found.file.readAll() == rendition.bytes)
        return true
    }
}

/// The error of an operation; nil where it succeeds.
func storeError(_ body: () async throws -> Void) async -> StoreError? {
    do {
        try await body()
        return nil
    } catch {
        return error as? StoreError
    }
}

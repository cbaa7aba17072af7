import Foundation
import TestSupport

/// Two nodes, their engines and an origin. The test calls `stop()`.
final class ClusterLab: Sendable {
    let redis: RedisServer
    let store: S3Server
    /// Between the first node and the store.
    let proxy: FaultProxy
    let origin: LoopbackOrigin
    let nodes: [GifreelProcess]

    init(_ handlers: [String: LoopbackOrigin.Handler], _ settings: [String] = []) async throws {
        let (redis, store) = (try await RedisServer(), try S3Server())
        let proxy = try FaultProxy(to: store.port)
        origin = try LoopbackOrigin(handlers)
        (self.redis, self.store, self.proxy) = (redis, store, proxy)
        nodes = try [("a", proxy.port), ("b", store.port)].map { name, port in
            try GifreelProcess(Self.settings(name, redis, store, port: port) + settings)
        }
        for node in nodes { try await Self.waitUntilShared(node) }
    }

    /// Starts another node, which the caller keeps.
    ///
    /// - Parameter directory: That of a node that has ended.
    func node(_ name: String, _ settings: [String] = [], directory: URL? = nil) async throws -> GifreelProcess {
        let node = try GifreelProcess(self.settings(name, port: store.port) + settings, directory: directory)
        try await Self.waitUntilShared(node)
        return node
    }

    /// The settings of a node that reaches the store at a port.
    func settings(_ name: String, port: Int) -> [String] { Self.settings(name, redis, store, port: port) }

    private static func settings(_ name: String, _ redis: RedisServer, _ store: S3Server, port: Int) -> [String] {
        [
            "admin.token=secret", "cluster.redis=\(redis.address)", "cluster.node=\(name)",
            "store.s3.endpoint=http://127.0.0.1:\(port)", "store.s3.bucket=\(store.bucket)", "store.s3.path_style=true",
            "store.s3.access_key=\(store.accessKey)", "store.s3.secret_key=\(store.secretKey)",
            // On a busy machine, the store may take longer than by default.
            "store.s3.lookup_timeout=20s",
        ]
    }

    private static func waitUntilShared(_ node: GifreelProcess) async throws {
        try await waitUntil("the node to take part") { try cluster(node)["shared"] as? Bool == true }
    }

    /// The member `cluster` of `GET /cache`.
    static func cluster(_ node: GifreelProcess) throws -> [String: Any] {
        try cacheState(node)["cluster"] as? [String: Any] ?? [:]
    }

    static func cacheState(_ node: GifreelProcess) throws -> [String: Any] {
        try object(node.request("GET", "/cache", headers: ["Authorization: Bearer secret"]).body)
    }

    static func object(_ body: [UInt8]) throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any] ?? [:]
    }

    /// Purges a target by way of a node.
    static func purge(_ node: GifreelProcess, _ target: String) throws -> RawHTTPResponse {
        try node.request("PURGE", target, headers: ["Authorization: Bearer secret"])
    }

    /// Waits until everything that the node produced is in the store.
    func waitForUploads(of node: GifreelProcess) async throws {
        try await waitUntil("the queue is empty") {
            let state = try Self.cacheState(node)
            let queued = (state["store"] as? [String: Any])?["queued"] as? Int
            return queued == 0 && (state["cluster"] as? [String: Any])?["leases"] as? Int == 0
        }
    }

    func stop() {
        for node in nodes { node.kill() }
        origin.stop()
        redis.stop()
        proxy.stop()
        store.stop()
    }
}

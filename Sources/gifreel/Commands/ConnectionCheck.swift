internal import Fetch
internal import Fleet
internal import HTTPClient
internal import Settings
internal import Store
internal import SystemIO
internal import Web

/// Tries the other servers that the settings name, as the server would use them.
enum ConnectionCheck {
    /// The setting that names a server, and the server's state.
    typealias Part = (name: String, result: Result<String, SettingsError>)

    /// Blocks for at most a few seconds per part.
    static func parts(of configuration: ServiceConfiguration) -> [Part] {
        var parts: [Part] = []
        if let cluster = configuration.cluster {
            parts.append(("cluster.redis", Result { () throws(SettingsError) in try redis(cluster) }))
        }
        if let store = configuration.store {
            parts.append(("store.s3", Result { () throws(SettingsError) in try bucket(store) }))
        }
        for hook in configuration.purgeHooks {
            parts.append(("purge.hooks.\(hook.name)", Result { () throws(SettingsError) in try server(of: hook) }))
        }
        return parts
    }

    private static func redis(_ configuration: ClusterConfiguration) throws(SettingsError) -> String {
        let server = try translating(try Cluster.check(configuration)) { (error: RedisError) in
            SettingsError("\(configuration.address): \(error)")
        }
        return "\(server) at \(configuration.address), and the user has all rights"
    }

    private static func bucket(_ configuration: SharedStoreConfiguration) throws(SettingsError) -> String {
        let store: SharedStore
        do {
            // Without a ledger: the outbox belongs to the server.
            store = try SharedStore(configuration) { _ in }
        } catch {
            throw SettingsError("\(error)")
        }
        defer { store.close() }
        return try Blocking.wait { () async -> Result<String, SettingsError> in
            do throws(StoreError) {
                try await store.check()
                return .success("\(configuration.bucket.name) takes, lists, returns and deletes an object")
            } catch {
                return .failure(SettingsError("\(configuration.bucket.name): \(error)"))
            }
        }.get()
    }

    /// Whether the server of a hook answers anything. A HEAD purges nothing.
    private static func server(of hook: PurgeHook) throws(SettingsError) -> String {
        var request = hook.probe
        request.userAgent = "gifreel/\(Gifreel.version)"
        request.timeout = .seconds(5)
        _ = try translating(try HTTPClient.perform(request)) { (error: HTTPError) in SettingsError("\(error)") }
        return "the server answers"
    }
}

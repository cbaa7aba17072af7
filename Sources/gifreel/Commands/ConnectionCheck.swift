internal import Fetch
internal import Fleet
internal import HTTPClient
internal import Store
internal import SystemIO
internal import Web

/// Tries the other servers that the settings name, as the server would use them.
enum ConnectionCheck {
    struct Failure: Error {
        let text: String
    }

    /// A server, by its setting, and its state.
    struct Part {
        let name: String
        let result: Result<String, Failure>
    }

    /// Blocks, for some seconds per part at most.
    static func parts(of configuration: ServiceConfiguration) -> [Part] {
        var parts: [Part] = []
        if let cluster = configuration.cluster {
            parts.append(Part(name: "cluster.redis", result: redis(cluster)))
        }
        if let store = configuration.store {
            parts.append(Part(name: "store.s3", result: bucket(store)))
        }
        for hook in configuration.purgeHooks {
            parts.append(Part(name: "purge.hooks.\(hook.name)", result: server(of: hook)))
        }
        return parts
    }

    private static func redis(_ configuration: ClusterConfiguration) -> Result<String, Failure> {
        do throws(RedisError) {
            let server = try Cluster.check(configuration)
            return .success("\(server) at \(configuration.address), and the user has all rights")
        } catch {
            return .failure(Failure(text: "\(configuration.address): \(error)"))
        }
    }

    private static func bucket(_ configuration: SharedStoreConfiguration) -> Result<String, Failure> {
        let store: SharedStore
        do {
            // Without a ledger: the outbox belongs to the server.
            store = try SharedStore(configuration) { _ in }
        } catch {
            return .failure(Failure(text: "\(error)"))
        }
        defer { store.close() }
        return Blocking.wait {
            do throws(StoreError) {
                try await store.check()
                return .success("\(configuration.bucket.name) takes, lists, returns and deletes an object")
            } catch {
                return .failure(Failure(text: "\(configuration.bucket.name): \(error)"))
            }
        }
    }

    /// Whether the server of a hook answers anything. A HEAD purges nothing.
    private static func server(of hook: PurgeHook) -> Result<String, Failure> {
        var request = hook.probe
        request.userAgent = "gifreel/\(Gifreel.version)"
        request.timeout = .seconds(5)
        do throws(HTTPError) {
            _ = try HTTPClient.perform(request)
            return .success("the server answers")
        } catch {
            return .failure(Failure(text: "\(error)"))
        }
    }
}

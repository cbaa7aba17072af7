internal import Fleet
internal import SystemIO
internal import Web

/// The statuses of the requests of all nodes, in the server that coordinates them.
struct ClusterStatuses: SharedStatusBook {
    let statuses: SharedStatuses

    func write(_ id: UInt128, _ document: [UInt8], for lifetime: Duration) async throws(SharedStatusesUnavailable) -> Bool {
        do throws(RedisError) {
            return try await statuses.write(Hex.encode(id), document, for: lifetime)
        } catch {
            throw SharedStatusesUnavailable()
        }
    }

    func read(_ id: UInt128) async throws(SharedStatusesUnavailable) -> [UInt8]? {
        do throws(RedisError) {
            return try await statuses.read(Hex.encode(id))
        } catch {
            throw SharedStatusesUnavailable()
        }
    }

    func cancel(_ id: UInt128) async -> Bool {
        (try? await statuses.cancel(Hex.encode(id))) ?? false
    }

    func remove(_ id: UInt128) async {
        try? await statuses.remove(Hex.encode(id))
    }
}

internal import Cluster
internal import SystemIO
internal import Web

/// The statuses of the requests of all nodes, in the server that coordinates them. If it fails, there are none.
struct ClusterStatuses: SharedStatusBook {
    let statuses: SharedStatuses

    func write(_ id: UInt128, _ document: [UInt8], for lifetime: Duration) async -> Bool {
        (try? await statuses.write(Hex.encode(id), document, for: lifetime)) ?? false
    }

    func read(_ id: UInt128) async -> [UInt8]? {
        try? await statuses.read(Hex.encode(id))
    }

    func leave(_ id: UInt128) async -> Bool {
        (try? await statuses.leave(Hex.encode(id))) ?? false
    }

    func remove(_ id: UInt128) async {
        try? await statuses.remove(Hex.encode(id))
    }
}

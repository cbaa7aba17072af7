internal import Synchronization

/// Leads from the connections to the node, which is created after them. Does not keep the node alive.
final class NodeRelay: Sendable {
    private struct Reference {
        weak var node: ClusterNode?
    }

    private let reference = Mutex(Reference())

    var node: ClusterNode? { reference.withLock { $0.node } }

    func set(_ node: ClusterNode) {
        reference.withLock { $0.node = node }
    }
}

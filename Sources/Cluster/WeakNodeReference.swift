internal import Synchronization

/// A weak reference from the connections to the node, which is created after them.
final class WeakNodeReference: Sendable {
    private struct Reference {
        weak var node: ClusterNode?
    }

    private let reference = Mutex(Reference())

    var node: ClusterNode? { reference.withLock { $0.node } }

    func set(_ node: ClusterNode) {
        reference.withLock { $0.node = node }
    }
}

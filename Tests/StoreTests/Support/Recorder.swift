import Synchronization

/// Values that concurrent code has reported, in order.
final class Recorder<Value: Sendable>: Sendable {
    private let stored = Mutex<[Value]>([])

    var values: [Value] { stored.withLock { $0 } }

    func add(_ value: Value) {
        stored.withLock { $0.append(value) }
    }
}

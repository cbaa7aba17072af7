import Foundation
import Synchronization

/// Runs `work` on threads of its own, so that all are under way at once, and returns what they have come to, in order.
func atOnce<Value: Sendable>(_ count: Int, _ work: @escaping @Sendable (Int) throws -> Value) throws -> [Value] {
    let results = AtOnceResults<Value>(count)
    for index in 0..<count {
        Thread { results.set(index, Result { try work(index) }) }.start()
    }
    while results.missing > 0 { usleep(1000) }
    return try results.all.map { try $0.get() }
}

private final class AtOnceResults<Value: Sendable>: Sendable {
    private let values: Mutex<[Result<Value, any Error>?]>

    init(_ count: Int) { values = Mutex(Array(repeating: nil, count: count)) }

    func set(_ index: Int, _ value: Result<Value, any Error>) { values.withLock { $0[index] = value } }
    var missing: Int { values.withLock { $0.count { $0 == nil } } }
    var all: [Result<Value, any Error>] { values.withLock { $0.compactMap(\.self) } }
}

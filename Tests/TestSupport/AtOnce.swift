internal import Foundation
internal import Synchronization

/// Runs `work` on one thread per index, all at the same time, and returns the results in the order of the indices.
///
/// - Throws: The first error of `work`, or ``WaitTimedOut`` where a thread does not end within two minutes.
@available(*, noasync)
package func atOnce<Value: Sendable>(_ count: Int, _ work: @escaping @Sendable (Int) throws -> Value) throws -> [Value] {
    let results = AtOnceResults<Value>(count)
    for index in 0..<count {
        Thread { results.set(index, Result { try work(index) }) }.start()
    }
    try blockUntil("\(results.missing) of \(count) threads end", within: .seconds(120)) { results.missing == 0 }
    return try results.all.map { try $0.get() }
}

private final class AtOnceResults<Value: Sendable>: Sendable {
    private let values: Mutex<[Result<Value, any Error>?]>

    init(_ count: Int) { values = Mutex(Array(repeating: nil, count: count)) }

    func set(_ index: Int, _ value: Result<Value, any Error>) { values.withLock { $0[index] = value } }
    var missing: Int { values.withLock { $0.count { $0 == nil } } }
    var all: [Result<Value, any Error>] { values.withLock { $0.compactMap(\.self) } }
}

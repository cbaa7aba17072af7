internal import Foundation
internal import Glibc
internal import Synchronization

/// The error for a condition that did not hold in time.
package struct WaitTimedOut: Error, CustomStringConvertible {
    package let description: String
}

/// Suspends the calling task until `condition` holds, and polls it every two milliseconds.
///
/// - Parameters:
///   - what: The event the test waits for, for the error. It is evaluated when the time is over.
///   - limit: The longest wait. It is far above what the event takes, so that a busy machine does not fail the test.
/// - Throws: ``WaitTimedOut``, which names the event and the line, an error of `condition`, or `CancellationError`.
package func waitUntil(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(60), isolation: isolated (any Actor)? = #isolation,
    file: String = #fileID, line: Int = #line, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while try await !condition() {
        guard ContinuousClock.now < deadline else {
            throw WaitTimedOut(description: "\(file):\(line): not within \(limit): \(what())")
        }
        try await Task.sleep(for: .milliseconds(2))
    }
}

/// Blocks the calling thread until `condition` holds, and polls it every two milliseconds.
///
/// It is not available in asynchronous code: there it would take a thread of the cooperative pool from the tasks that the
/// test waits for. The parameters are those of ``waitUntil(_:within:isolation:file:line:_:)``.
///
/// - Throws: ``WaitTimedOut``, or an error of `condition`.
@available(*, noasync, message: "use waitUntil, which suspends the task")
package func blockUntil(
    _ what: @autoclosure () -> String, within limit: Duration = .seconds(60), file: String = #fileID, line: Int = #line,
    _ condition: () throws -> Bool
) throws {
    let deadline = ContinuousClock.now + limit
    while try !condition() {
        guard ContinuousClock.now < deadline else {
            throw WaitTimedOut(description: "\(file):\(line): not within \(limit): \(what())")
        }
        usleep(2000)
    }
}

/// Starts `body` on a thread of its own.
///
/// The thread belongs to a task with the values of the caller's: an expectation that fails on it is a failure of the test. On
/// any other thread, the testing library does not know the test, and reports that it has passed.
@discardableResult
package func startThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) -> Task<Value, any Error> {
    Task(executorPreference: ThreadPerJob()) { try body() }
}

/// Runs `body` on a thread as ``startThread(_:)`` does, so that its blocking calls hold no thread of the cooperative pool.
package func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await startThread(body).value
}

private final class ThreadPerJob: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        Thread { job.runSynchronously(on: self.asUnownedTaskExecutor()) }.start()
    }
}

/// Runs `work` on one thread per index as ``startThread(_:)`` does, all at the same time, and returns the results in the order of
/// the indices.
///
/// - Throws: The first error of `work`, or ``WaitTimedOut`` if a thread does not end within the limit.
@available(*, noasync)
package func atOnce<Value: Sendable>(
    _ count: Int, within limit: Duration = .seconds(120), _ work: @escaping @Sendable (Int) throws -> Value
) throws -> [Value] {
    let results = AtOnceResults<Value>(count)
    for index in 0..<count {
        startThread { results.set(index, Result { try work(index) }) }
    }
    try blockUntil("\(results.missing) of \(count) threads end", within: limit) { results.missing == 0 }
    return try results.all.map { try $0.get() }
}

private final class AtOnceResults<Value: Sendable>: Sendable {
    private let values: Mutex<[Result<Value, any Error>?]>

    init(_ count: Int) { values = Mutex(Array(repeating: nil, count: count)) }

    func set(_ index: Int, _ value: Result<Value, any Error>) { values.withLock { $0[index] = value } }
    var missing: Int { values.withLock { $0.count { $0 == nil } } }
    var all: [Result<Value, any Error>] { values.withLock { $0.compactMap(\.self) } }
}

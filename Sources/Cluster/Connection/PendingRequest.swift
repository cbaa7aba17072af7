internal import Synchronization

/// A pipeline of commands that waits for its replies. Its completion runs once, on any thread.
final class PendingRequest: Sendable {
    typealias Completion = @Sendable (Result<[RedisValue], RedisError>) -> Void

    let shapes: [ReplyShape]
    let deadline: Duration
    private let completion: Mutex<Completion?>

    init(_ shapes: [ReplyShape], deadline: Duration, _ completion: @escaping Completion) {
        self.shapes = shapes
        self.deadline = deadline
        self.completion = Mutex(completion)
    }

    /// Completes the request unless it is complete already. The connection skips replies to a request that is complete.
    func finish(_ result: Result<[RedisValue], RedisError>) {
        completion.withLock { $0.take() }?(result)
    }
}

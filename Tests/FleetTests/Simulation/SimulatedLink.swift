@testable import Fleet

/// A connection of a simulated node: requests and replies in transit, each in order, which can be cut at any moment.
///
/// `@unchecked Sendable`: used on the scheduler's thread only.
final class SimulatedLink: RedisCommands, @unchecked Sendable {
    private final class Request {
        let commands: [RedisCommand]
        let sent: Duration
        var continuation: CheckedContinuation<Result<[RedisValue], RedisError>, Never>?
        var timer: (any AnyObject & Sendable)?
        var replies: [RedisValue]?

        init(_ commands: [RedisCommand], _ sent: Duration) {
            (self.commands, self.sent) = (commands, sent)
        }

        func finish(_ result: Result<[RedisValue], RedisError>) {
            timer = nil
            continuation.take()?.resume(returning: result)
        }
    }

    private let scheduler: Scheduler
    private let server: SimulatedRedis
    private let lane: Scheduler.Lane
    private var requests: [Request] = []
    /// No request arrives before this moment.
    var isCutUntil: Duration = .zero
    var isDead = false

    init(_ scheduler: Scheduler, _ server: SimulatedRedis, _ lane: Scheduler.Lane) {
        self.scheduler = scheduler
        self.server = server
        self.lane = lane
        scheduler.transports.append { [unowned self] in possibleActions() }
    }

    /// Loses what is in transit.
    func cut(for time: Duration) {
        isCutUntil = scheduler.now + time
        let lost = requests
        requests = []
        for request in lost { request.finish(.failure(.unavailable("cut"))) }
    }

    func replies(to commands: [RedisCommand], within limit: Duration) async throws(RedisError) -> [RedisValue] {
        if isDead || isCutUntil > scheduler.now { throw .unavailable("cut") }
        if Task.isCancelled { throw .cancelled }
        let request = Request(commands, scheduler.now)
        let box = Box(request)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                request.continuation = continuation
                request.timer = scheduler.after(limit) { box.request.finish(.failure(.timedOut)) }
                requests.append(request)
            }
        } onCancel: {
            box.request.finish(.failure(.cancelled))
        }
        return try result.get()
    }

    private struct Box: @unchecked Sendable {
        let request: Request

        init(_ request: Request) { self.request = request }
    }

    private func possibleActions() -> [() -> Void] {
        var actions: [() -> Void] = []
        if let next = requests.first(where: { $0.replies == nil }), canExecute(next) {
            actions.append { [scheduler, server] in
                next.replies = next.commands.map { server.execute($0, now: scheduler.now) }
            }
        }
        if let first = requests.first, let replies = first.replies, lane.pausedUntil <= scheduler.now {
            actions.append { [unowned self] in
                requests.removeFirst()
                first.finish(.success(replies))
            }
        }
        return actions
    }

    /// A read that blocks is executed when there are entries, or when its time is over.
    private func canExecute(_ request: Request) -> Bool {
        let words = request.commands[0].arguments.map { String(decoding: $0, as: UTF8.self) }
        guard words[0] == "XREAD", let id = StreamID(words.last ?? "") else { return true }
        return server.hasEntries(after: id) || scheduler.now >= request.sent + .seconds(2)
    }
}

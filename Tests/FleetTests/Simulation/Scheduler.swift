import SystemIO
import TestSupport

@testable import Fleet

/// Runs tasks, timers and transports of simulated nodes on one thread, in an order that a seed decides.
///
/// `@unchecked Sendable`: everything happens on the thread that calls ``step()``.
final class Scheduler: @unchecked Sendable {
    /// Runs the jobs of one node when the scheduler says so.
    final class Lane: TaskExecutor, @unchecked Sendable {
        fileprivate var jobs: [UnownedJob] = []
        /// The node is stopped (SIGSTOP) until this moment.
        var pausedUntil: Duration = .zero

        func enqueue(_ job: consuming ExecutorJob) {
            jobs.append(UnownedJob(job))
        }
    }

    private final class Timer: Sendable {
        let end: Duration
        let number: Int
        let action: @Sendable () -> Void

        init(_ end: Duration, _ number: Int, _ action: @escaping @Sendable () -> Void) {
            (self.end, self.number, self.action) = (end, number, action)
        }
    }

    private struct WeakTimer {
        weak var timer: Timer?
        let end: Duration
        let number: Int
    }

    private(set) var now: Duration = .seconds(1000)
    /// The clock and the timers of all nodes.
    var time: TimeSource {
        TimeSource(
            unixNanoseconds: { Int64(self.now / .nanoseconds(1)) },
            monotonicNanoseconds: { UInt64(self.now / .nanoseconds(1)) },
            timers: { self.after($0, $1) })
    }
    var numbers: SeededNumbers
    private var lanes: [Lane] = []
    private var timers: [WeakTimer] = []
    private var timerCount = 0
    /// Transports: each returns the actions that are possible now.
    var transports: [() -> [() -> Void]] = []

    init(seed: UInt64) {
        numbers = SeededNumbers(seed: seed)
    }

    func lane() -> Lane {
        let lane = Lane()
        lanes.append(lane)
        return lane
    }

    func after(_ delay: Duration, _ action: @escaping @Sendable () -> Void) -> any AnyObject & Sendable {
        timerCount += 1
        let timer = Timer(now + max(.zero, delay), timerCount, action)
        timers.append(WeakTimer(timer: timer, end: timer.end, number: timer.number))
        return timer
    }

    /// True with a probability of one to `count`.
    func chance(_ count: Int) -> Bool {
        Int.random(in: 0..<count, using: &numbers) == 0
    }

    /// Does one thing that can happen now, or lets time pass until the next timer.
    func step() {
        var actions: [() -> Void] = []
        for lane in lanes where lane.pausedUntil <= now {
            for index in lane.jobs.indices {
                actions.append {
                    let job = lane.jobs.remove(at: index)
                    job.runSynchronously(on: lane.asUnownedTaskExecutor())
                }
            }
        }
        for transport in transports { actions += transport() }
        if actions.isEmpty || chance(40) { return passTime() }
        if let action = actions.randomElement(using: &numbers) { action() }
    }

    private func passTime() {
        timers.removeAll { $0.timer == nil }
        let ends = timers.map(\.end) + lanes.map(\.pausedUntil).filter { $0 > now }
        guard let next = ends.min() else {
            now += .milliseconds(100)
            return
        }
        now = max(now, next)
        let due = timers.filter { $0.end <= now }.sorted { ($0.end, $0.number) < ($1.end, $1.number) }
        let running = due.compactMap(\.timer)
        timers.removeAll { $0.end <= now }
        for timer in running { timer.action() }
    }
}

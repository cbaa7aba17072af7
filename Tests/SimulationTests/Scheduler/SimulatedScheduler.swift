import Synchronization
import SystemIO
import TestSupport

/// Runs tasks, blocking work and timers one step at a time, in an order that a seed decides, by a clock of its own.
///
/// A step resumes a task until it suspends, runs blocking work until its next pause, or fires a timer. Only one thread runs at any
/// moment, so the order of steps is the order of all events, and one seed gives one order.
final class SimulatedScheduler: TaskExecutor {
    private enum Step: Sendable {
        case job(UnownedJob)
        case thread(SimulatedThread)
        case timer(SimulatedTimer)
    }

    private struct State {
        var generator: SeededNumbers
        var ready: [Step] = []
        var timers = TimerQueue()
        var now: UInt64 = 0
        var steps = 0
        /// A hash of all choices: two runs with equal traces are the same.
        var trace: UInt64 = 0xcbf2_9ce4_8422_2325
        var idleThreads: [SimulatedThread] = []
        var running: SimulatedThread?
        let slowness: Double

        mutating func note(_ value: UInt64) {
            trace = (trace ^ value) &* 0x100_0000_01b3
        }
    }

    private let state: Mutex<State>

    /// - Parameter slowness: The probability that blocking work waits for up to 20 seconds at a pause.
    init(seed: UInt64, slowness: Double = 0) {
        state = Mutex(State(generator: SeededNumbers(seed: seed), slowness: slowness))
    }

    /// Nanoseconds since the start of the simulation.
    var now: UInt64 { state.withLock(\.now) }
    /// The number of steps so far.
    var steps: Int { state.withLock(\.steps) }
    var trace: UInt64 { state.withLock(\.trace) }

    /// Draws a number from the seed.
    func number<Value: FixedWidthInteger & Sendable>(_ range: ClosedRange<Value>) -> Value {
        state.withLock { Value.random(in: range, using: &$0.generator) }
    }

    /// Whether an event with this probability occurs.
    func chance(_ probability: Double) -> Bool {
        state.withLock { Double.random(in: 0..<1, using: &$0.generator) < probability }
    }

    func element<Value: Sendable>(of values: [Value]) -> Value {
        values[number(0...values.count - 1)]
    }

    // MARK: Adding steps

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.ready.append(.job(job)) }
    }

    /// Runs an action after a random time, again and again while `condition` holds.
    func repeatEvery(
        _ milliseconds: ClosedRange<Int>, while condition: @escaping @Sendable () -> Bool,
        _ action: @escaping @Sendable () -> Void
    ) {
        let delay = Duration.milliseconds(number(milliseconds))
        let timer = SimulatedTimer { [self] in
            guard condition() else { return }
            action()
            repeatEvery(milliseconds, while: condition, action)
        }
        state.withLock { $0.timers.insert(timer, due: $0.now + Self.nanoseconds(delay)) }
    }

    /// Runs an action after a time, unless the result is released first.
    func startTimer(after delay: Duration, _ action: @escaping @Sendable () -> Void) -> CancelledOnRelease {
        let timer = SimulatedTimer(action)
        state.withLock { $0.timers.insert(timer, due: $0.now + Self.nanoseconds(delay)) }
        return CancelledOnRelease(timer)
    }

    private static func nanoseconds(_ delay: Duration) -> UInt64 {
        let (seconds, attoseconds) = max(.zero, delay).components
        return UInt64(seconds) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }

    /// Suspends the calling task for a time.
    func wait(for delay: Duration) async {
        await withCheckedContinuation { continuation in
            state.withLock { $0.timers.insert(SimulatedTimer { continuation.resume() }, due: $0.now + Self.nanoseconds(delay)) }
        }
    }

    /// Runs blocking work on a thread that runs only in its steps.
    func startThread(_ work: @escaping @Sendable () -> Void) {
        state.withLock { state in
            let thread = state.idleThreads.popLast() ?? SimulatedThread()
            thread.assign(work)
            state.ready.append(.thread(thread))
        }
    }

    /// Ends the present step of blocking work; the work goes on in a later one. Has no effect on tasks.
    func pause() {
        let running = state.withLock(\.running)
        running?.pause()
    }

    // MARK: Running

    /// Takes one step. Timers that are not due yet become due when nothing else can happen, and sometimes before that.
    ///
    /// - Returns: False if there is nothing to do.
    func step() -> Bool {
        let next = state.withLock { state -> Step? in
            state.steps += 1
            let takesTimer = state.ready.isEmpty || UInt8.random(in: 0...7, using: &state.generator) == 0
            if takesTimer, let (due, timer) = state.timers.popFirst() {
                state.now = max(state.now, due)
                state.note(due)
                return .timer(timer)
            }
            guard !state.ready.isEmpty else { return nil }
            let index = Int.random(in: 0..<state.ready.count, using: &state.generator)
            state.note(UInt64(index) << 32 | UInt64(state.ready.count))
            state.ready.swapAt(index, state.ready.count - 1)
            return state.ready.removeLast()
        }
        switch next {
        case nil: return false
        case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .timer(let timer): timer.fire()
        case .thread(let thread): run(thread)
        }
        return true
    }

    /// Adds what happened to the trace.
    func note(_ value: UInt64) {
        state.withLock { $0.note(value) }
    }

    private func run(_ thread: SimulatedThread) {
        state.withLock { $0.running = thread }
        let hasEnded = thread.resume()
        state.withLock { state in
            state.running = nil
            if hasEnded {
                state.idleThreads.append(thread)
            } else if Double.random(in: 0..<1, using: &state.generator) < state.slowness {
                let delay = UInt64.random(in: 0...20_000_000_000, using: &state.generator)
                let timer = SimulatedTimer { self.state.withLock { $0.ready.append(.thread(thread)) } }
                state.timers.insert(timer, due: state.now + delay)
            } else {
                state.ready.append(.thread(thread))
            }
        }
    }

    /// Ends the threads. To be called when there is nothing to do any more.
    func close() {
        let threads = state.withLock { state in
            defer { state.idleThreads = [] }
            return state.idleThreads
        }
        for thread in threads { thread.end() }
    }
}

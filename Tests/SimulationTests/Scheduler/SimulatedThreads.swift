import Synchronization
import SystemIO

/// A thread of the system that runs only while another thread waits for it in ``resume()``.
final class SimulatedThread: Sendable {
    private struct State {
        var work: (@Sendable () -> Void)?
        var isEnding = false
    }

    private let state = Mutex(State())
    private let turn = Semaphore()
    private let handedBack = Semaphore()
    private let thread = Mutex<SystemThread?>(nil)

    init() {
        let started = SystemThread.start(name: "simulated") { self.run() }
        thread.withLock { $0 = started }
    }

    /// Gives the idle thread work, which begins with the next ``resume()``.
    func assign(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.work = work }
    }

    /// Lets the thread run until its work pauses or ends.
    ///
    /// - Returns: Whether the work has ended.
    func resume() -> Bool {
        turn.signal()
        handedBack.wait()
        return state.withLock { $0.work == nil }
    }

    /// Hands control back to the thread that called ``resume()``. Must be called by the work.
    func pause() {
        handedBack.signal()
        turn.wait()
    }

    /// Ends the idle thread.
    func end() {
        state.withLock { $0.isEnding = true }
        turn.signal()
        thread.withLock { $0.take() }?.join()
    }

    private func run() {
        while true {
            turn.wait()
            guard let work = state.withLock({ $0.isEnding ? nil : $0.work }) else { return }
            work()
            state.withLock { $0.work = nil }
            handedBack.signal()
        }
    }
}

/// A bounded number of simulated threads with a bounded queue, in place of `WorkThreads`.
final class SimulatedThreads: BlockingWork {
    private struct State {
        var queue: [Work] = []
        var running = 0
        var isClosed = false
    }

    private let scheduler: SimulatedScheduler
    private let count: Int
    private let limit: Int
    private let state = Mutex(State())

    init(_ scheduler: SimulatedScheduler, count: Int, limit: Int) {
        self.scheduler = scheduler
        self.count = count
        self.limit = limit
    }

    func submit(_ work: @escaping Work) -> Bool {
        let isAccepted = state.withLock { state in
            guard !state.isClosed, state.queue.count < limit else { return false }
            state.queue.append(work)
            return true
        }
        if isAccepted { startNext() }
        return isAccepted
    }

    /// Refuses further work. What is queued goes on in later steps.
    func close() {
        state.withLock { $0.isClosed = true }
    }

    private func startNext() {
        let work = state.withLock { state -> Work? in
            guard state.running < count, !state.queue.isEmpty else { return nil }
            state.running += 1
            return state.queue.removeFirst()
        }
        guard let work else { return }
        scheduler.startThread { [self] in
            work()
            state.withLock { $0.running -= 1 }
            startNext()
        }
    }
}

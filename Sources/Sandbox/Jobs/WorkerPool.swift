package import Media
internal import Synchronization
package import SystemIO

/// A bounded number of workers with a bounded queue.
///
/// Thread-safe. A waiting job needs no thread. A running job blocks one thread of the pool, which sleeps.
package final class WorkerPool: Sendable {
    package typealias Outcome = Result<WorkerReport, SandboxError>

    private struct Entry: Sendable {
        var number: Int
        var job: WorkerJob
        var turn: JobTurn
        var input: SharedDescriptor
        var output: SharedDescriptor
        var enqueuedAt: ContinuousClock.Instant
        var cancellation = JobCancellation()
        var continuation: CheckedContinuation<Outcome, Never>

        /// The job for ``FairTurns``. Its cost is the CPU time that it may use.
        var waiting: FairTurns.Job { FairTurns.Job(claims: turn.claims, urgency: turn.urgency, cost: job.allowance.cpu) }
    }

    private struct State {
        /// The queued jobs in order of arrival.
        var waiting: [Entry] = []
        var turns = FairTurns()
        var running: [Int: (cancellation: JobCancellation, turn: JobTurn)] = [:]
        /// The number of threads that run jobs or are about to.
        var runners = 0
        var nextNumber = 0
        /// Whether the pool has cancelled its jobs and accepts no more.
        var isCancelled = false
    }

    package let configuration: WorkerPoolConfiguration
    private let supervisor: JobSupervisor
    private let threads: WorkThreads
    private let state = Mutex(State())
    /// The latest positions by ``JobTurn``, and the time from which they are.
    private let positions = Mutex<(from: ContinuousClock.Instant?, byTurn: [ObjectIdentifier: Int])>((nil, [:]))

    package init(zygote: Zygote, configuration: WorkerPoolConfiguration) {
        self.configuration = configuration
        supervisor = JobSupervisor(zygote: zygote)
        let most = configuration.workers + 1
        threads = WorkThreads(count: most, limit: most, name: "gifreel-worker")
    }

    /// Cancels all waiting and running jobs and accepts no more. Returns at once; ``close()`` then waits only until the workers
    /// have ended.
    package func cancelAll() {
        let (waiting, running) = state.withLock { state in
            state.isCancelled = true
            defer { state.waiting = [] }
            return (state.waiting, state.running.values.map(\.cancellation))
        }
        for entry in waiting { entry.continuation.resume(returning: .failure(.cancelled)) }
        for cancellation in running { cancellation.cancel() }
    }

    /// Accepts no more jobs, waits for queued and running jobs, and ends the threads. Blocks.
    package func close() {
        threads.close()
    }

    /// The numbers of running and waiting jobs.
    package var load: (running: Int, waiting: Int) {
        state.withLock { ($0.running.count, $0.waiting.count) }
    }

    /// Counts of finished jobs and replaced zygotes.
    package var statistics: SandboxStatistics { supervisor.statistics }

    /// Runs a job as soon as a worker is free and it is the job's turn. Clients are served in turn, each client's most urgent
    /// job first. Equally urgent jobs of a client run in order of arrival.
    ///
    /// Cancelling the task removes a waiting job from the queue and kills the worker of a running job. A job may wait without
    /// limit; callers limit that time.
    ///
    /// - Parameters:
    ///   - turn: The job's clients and urgency. Records the start, the progress and the CPU time of the job.
    ///   - input: The source file, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written with pwrite.
    package func run(
        _ job: WorkerJob, turn: JobTurn = JobTurn(), input: SharedDescriptor, output: SharedDescriptor
    ) async throws(SandboxError) -> WorkerReport {
        let number = state.withLock { state in
            state.nextNumber += 1
            return state.nextNumber
        }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                enqueue(
                    Entry(
                        number: number, job: job, turn: turn, input: input, output: output, enqueuedAt: .now,
                        continuation: continuation))
            }
        } onCancel: {
            cancel(number)
        }
        return try outcome.get()
    }

    /// Returns the position of a waiting job in the queue, from 1 for the job that runs next; nil if the job does not wait, or is
    /// not among the next 128. It may be ``WorkerPoolConfiguration/positionAge`` old. Does not block.
    package func position(of turn: JobTurn) -> Int? {
        let isDue = positions.withLock { positions in
            guard positions.from.map({ .now - $0 >= configuration.positionAge }) ?? true else { return false }
            positions.from = .now
            return true
        }
        if isDue {
            let current = currentPositions()
            positions.withLock { $0.byTurn = current }
        }
        return positions.withLock { $0.byTurn[ObjectIdentifier(turn)] }
    }

    /// The positions of the next jobs. Takes milliseconds for a long queue, so most of the work is outside of the lock.
    private func currentPositions() -> [ObjectIdentifier: Int] {
        var (waiting, turns) = state.withLock { ($0.waiting, $0.turns) }
        var jobs = waiting.map(\.waiting)
        var positions: [ObjectIdentifier: Int] = [:]
        while positions.count < Self.mostPositions, let next = turns.next(jobs) {
            jobs.remove(at: next)
            positions[ObjectIdentifier(waiting.remove(at: next).turn)] = positions.count + 1
        }
        return positions
    }

    private static let mostPositions = 128

    // MARK: The queue

    private func enqueue(_ entry: Entry) {
        enum Step {
            case refuse(SandboxError)
            case wait
            case startRunner
        }
        let step: Step = state.withLock { state in
            let room = configuration.queue + max(0, configuration.workers - state.running.count)
            if state.isCancelled { return .refuse(.cancelled) }
            if state.waiting.count >= room { return .refuse(.queueFull) }
            state.waiting.append(entry)
            // A runner takes jobs until none waits, so a cancelled job leaves no work item behind.
            let isNeeded = state.runners < configuration.workers
            let isExtra = state.runners == configuration.workers && !ready(state).isEmpty
            guard isNeeded || isExtra else { return .wait }
            state.runners += 1
            return .startRunner
        }
        switch step {
        case .refuse(let reason): return entry.continuation.resume(returning: .failure(reason))
        case .wait: break
        case .startRunner:
            let isSubmitted = threads.submit {
                while let (entry, threads) = self.takeNext() { self.run(entry, encoderThreads: threads) }
            }
            if !isSubmitted {
                // The pool is closed.
                state.withLock { $0.runners -= 1 }
                remove(entry.number, because: .queueFull)
            }
        }
        // A cancellation that came before the job was queued found nothing to remove.
        if Task.isCancelled { cancel(entry.number) }
    }

    /// Removes a waiting job from the queue and fails it.
    private func remove(_ number: Int, because reason: SandboxError) {
        let entry: Entry? = state.withLock { state in
            if let index = state.waiting.firstIndex(where: { $0.number == number }) {
                return state.waiting.remove(at: index)
            }
            return nil
        }
        entry?.continuation.resume(returning: .failure(reason))
    }

    private func cancel(_ number: Int) {
        remove(number, because: .cancelled)
        state.withLock { $0.running[number]?.cancellation }?.cancel()
    }

    // MARK: Running

    /// Returns the indices of the waiting jobs that may begin.
    ///
    /// While all workers are busy and one client, or background work, has more than half of them, a job of a client that has none
    /// may begin in one more. Otherwise a client with a few long jobs would make all others wait until they end.
    private func ready(_ state: State) -> [Int] {
        if state.running.count < configuration.workers { return Array(state.waiting.indices) }
        let served = state.running.values.map(\.turn.clients)
        let shares = Dictionary(served.joined().map { ($0, 1) }, uniquingKeysWith: +)
        let largest = max(served.count(where: \.isEmpty), shares.values.max() ?? 0)
        guard served.count == configuration.workers, largest * 2 > served.count else { return [] }
        return state.waiting.indices.filter { state.waiting[$0].turn.clients.contains { shares[$0] == nil } }
    }

    /// Moves the job whose turn it is from the queue to the running jobs. Returns nil if no job may begin; the calling runner then
    /// ends, and a job enqueued later starts another runner.
    private func takeNext() -> (entry: Entry, encoderThreads: Int)? {
        state.withLock { state in
            let ready = ready(state)
            guard let next = state.turns.next(ready.map { state.waiting[$0].waiting }) else {
                state.runners -= 1
                return nil
            }
            let entry = state.waiting.remove(at: ready[next])
            state.running[entry.number] = (entry.cancellation, entry.turn)
            return (entry, state.running.count == 1 && state.waiting.isEmpty ? configuration.threadsAlone : 1)
        }
    }

    private func run(_ entry: Entry, encoderThreads: Int) {
        entry.turn.begin()
        var job = entry.job
        job.transcoder.threads = encoderThreads
        let startedAt = ContinuousClock.now
        let outcome: Outcome
        do throws(SandboxError) {
            let (result, codecs, exit) = try supervisor.run(
                job, input: entry.input, output: entry.output, cancellation: entry.cancellation, onProgress: entry.turn.report
            ) { entry.turn.spend(.microseconds($0.cpuMicroseconds)) }
            outcome = .success(
                WorkerReport(
                    result: result, codecs: codecs, queued: entry.enqueuedAt.duration(to: startedAt),
                    ran: startedAt.duration(to: .now), cpuMicroseconds: exit.cpuMicroseconds, peakBytes: exit.peakBytes))
        } catch {
            outcome = .failure(error)
        }
        state.withLock { _ = $0.running.removeValue(forKey: entry.number) }
        entry.continuation.resume(returning: outcome)
    }
}

/// The size of a worker pool and of its queue (settings `transcode.*`).
package struct WorkerPoolConfiguration: Sendable, Equatable {
    /// The number of concurrent workers. While one client, or background work, has more than half of them, one more may run a job
    /// of a client that has none.
    package var workers: Int
    /// The maximum number of waiting jobs.
    package var queue: Int
    /// Encoder threads of a job that runs alone; any other job uses one.
    package var threadsAlone: Int
    /// How long ``WorkerPool/position(of:)`` returns the same positions. Each event stream asks four times per second.
    var positionAge = Duration.milliseconds(250)

    package init(workers: Int, queue: Int, threadsAlone: Int) {
        self.workers = workers
        self.queue = queue
        self.threadsAlone = threadsAlone
    }
}

/// The result of a job and the resources that it used.
package struct WorkerReport: Sendable, Equatable {
    package var result: TranscodeResult
    /// The parameter `codecs` of the file's media type (RFC 6381); nil if the format has none.
    package var codecs: String?
    /// The time in the queue.
    package var queued: Duration
    /// The time from the start to the end of the job.
    package var ran: Duration
    /// CPU time in microseconds.
    package var cpuMicroseconds: Int
    /// The worker's peak resident set size, in bytes.
    package var peakBytes: Int
}

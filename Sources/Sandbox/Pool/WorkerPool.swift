internal import Media
internal import Synchronization
package import SystemIO

/// A bounded number of workers with a bounded queue before them.
///
/// Thread-safe. Jobs wait without a thread; the running ones have one each, which sleeps.
package final class WorkerPool: Sendable {
    package typealias Outcome = Result<WorkerReport, SandboxError>

    /// A job that waits.
    private struct Entry: Sendable {
        var number: Int
        var job: WorkerJob
        var turn: JobTurn
        var input: SharedDescriptor
        var output: SharedDescriptor
        var asked: ContinuousClock.Instant
        var cancellation = JobCancellation()
        var continuation: CheckedContinuation<Outcome, Never>
    }

    private struct State {
        var waiting: [Entry] = []
        var running: [Int: JobCancellation] = [:]
        var nextNumber = 0
    }

    package let configuration: WorkerPoolConfiguration
    private let zygote: Zygote
    private let supervisor: JobSupervisor
    private let threads: WorkThreads
    private let state = Mutex(State())

    package init(zygote: Zygote, configuration: WorkerPoolConfiguration) {
        self.configuration = configuration
        self.zygote = zygote
        supervisor = JobSupervisor(zygote: zygote)
        // One piece of work a job that waits or runs; each does whatever job is first when its turn comes.
        threads = WorkThreads(
            count: configuration.workers, limit: configuration.queue + configuration.workers, name: "gifreel-worker")
    }

    /// Takes no more jobs, waits for those it has, and ends the threads. Blocks.
    package func close() {
        threads.close()
    }

    /// Jobs that run and jobs that wait.
    package var load: (running: Int, waiting: Int) {
        state.withLock { ($0.running.count, $0.waiting.count) }
    }

    /// What became of the jobs so far.
    package var statistics: SandboxStatistics {
        var statistics = supervisor.counters.statistics
        statistics.replacedZygotes = zygote.replacements
        return statistics
    }

    /// Runs a job as soon as a worker is free and no more urgent job waits; of equally urgent ones the first goes first.
    ///
    /// Cancelling the task takes a job that still waits out of the queue, and kills the worker of one that runs. How long a
    /// job may wait is for its callers to say.
    ///
    /// - Parameters:
    ///   - turn: How urgent it is; tells when it has begun.
    ///   - input: The GIF, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written by position.
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
                        number: number, job: job, turn: turn, input: input, output: output, asked: .now,
                        continuation: continuation))
            }
        } onCancel: {
            cancel(number)
        }
        return try outcome.get()
    }

    private func enqueue(_ entry: Entry) {
        let refusal: SandboxError? = state.withLock { state in
            if state.waiting.count >= configuration.queue + max(0, configuration.workers - state.running.count) {
                return .queueFull
            }
            state.waiting.append(entry)
            return nil
        }
        if let refusal { return entry.continuation.resume(returning: .failure(refusal)) }
        if !threads.submit({ self.runFirst() }) { remove(entry.number, because: .queueFull) }
        // A cancellation that came before the job was in the queue found nothing to take out.
        if Task.isCancelled { cancel(entry.number) }
    }

    /// Takes a job that still waits out of the queue and tells its caller why.
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
        state.withLock { $0.running[number] }?.cancel()
    }

    private func runFirst() {
        let entry: Entry? = state.withLock { state in
            let next = state.waiting.indices.min { left, right in
                state.waiting[left].turn.urgency.level < state.waiting[right].turn.urgency.level
            }
            guard let next else { return nil }
            let entry = state.waiting.remove(at: next)
            state.running[entry.number] = entry.cancellation
            return entry
        }
        guard let entry else { return }
        entry.turn.begin()
        var job = entry.job
        job.transcoder.threads = state.withLock { $0.running.count == 1 && $0.waiting.isEmpty ? configuration.threadsAlone : 1 }
        let began = ContinuousClock.now
        let outcome: Outcome
        do throws(SandboxError) {
            let (result, exit) = try supervisor.run(
                job, input: entry.input, output: entry.output, cancellation: entry.cancellation)
            outcome = .success(
                WorkerReport(
                    result: result, queued: entry.asked.duration(to: began), ran: began.duration(to: .now),
                    cpuMicroseconds: exit.cpuMicroseconds, peakBytes: exit.peakBytes))
        } catch {
            outcome = .failure(error)
        }
        state.withLock { _ = $0.running.removeValue(forKey: entry.number) }
        entry.continuation.resume(returning: outcome)
    }
}

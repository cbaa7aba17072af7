internal import CLinux
internal import Glibc
package import Media
internal import Synchronization
package import SystemIO

/// The supervision of a worker from its start to its end. Blocks the calling thread. Thread-safe.
///
/// Nothing that a worker sends is trusted: the reply must be one well-formed message whose numbers are in range and within the
/// job's limits, and the file is inspected. Both checks happen after the zygote has reported the worker's end, when nothing can
/// change any more.
package final class JobSupervisor: Sendable {
    /// The result of a job and the resources that its worker used.
    ///
    /// `codecs` is the parameter of the file's media type that the inspection read from the file.
    package typealias Outcome = (result: TranscodeResult, codecs: String?, exit: WorkerExit)

    /// The number of starts per job. If a zygote dies, its workers end too, which is not the fault of their jobs.
    private static let attempts = 2

    private let zygote: Zygote
    private let counts = Mutex(SandboxStatistics())

    package init(zygote: Zygote) {
        self.zygote = zygote
    }

    /// Counts of finished jobs and replaced zygotes.
    package var statistics: SandboxStatistics {
        var statistics = counts.withLock { $0 }
        statistics.replacedZygotes = zygote.replacements
        return statistics
    }

    /// Runs the job.
    ///
    /// - Parameters:
    ///   - input: The source file, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written with pwrite.
    ///   - cancellation: Ends the job early.
    ///   - onProgress: Called on the calling thread with the worker's progress reports, several per second. Their numbers are
    ///     in range but may be false.
    ///   - onExit: Called on the calling thread with the end of each worker, also of one that failed.
    /// - Throws: ``SandboxError``. The contents of the output are then undefined.
    package func run(
        _ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor, cancellation: JobCancellation = JobCancellation(),
        onProgress: (FrameProgress) -> Void = { _ in }, onExit: (WorkerExit) -> Void = { _ in }
    ) throws(SandboxError) -> Outcome {
        do throws(SandboxError) {
            let outcome = try runWithRetries(job, input, output, cancellation, onProgress, onExit)
            count(.finished)
            return outcome
        } catch {
            count(JobOutcome(error))
            throw error
        }
    }

    private func count(_ outcome: JobOutcome) {
        counts.withLock { $0.jobs[outcome, default: 0] += 1 }
    }

    private func runWithRetries(
        _ job: WorkerJob, _ input: SharedDescriptor, _ output: SharedDescriptor, _ cancellation: JobCancellation,
        _ onProgress: (FrameProgress) -> Void, _ onExit: (WorkerExit) -> Void
    ) throws(SandboxError) -> Outcome {
        guard clinux_memfd_is_sealed(input.number) != 0 else {
            throw .unavailable(SystemError("the input is not sealed", code: EPERM))
        }
        var job = job
        job.taskLimit = Self.taskLimit
        for _ in 0..<Self.attempts {
            let record: JobWatch.Record
            do throws(SystemError) {
                let worker = try zygote.launch(job, input: input, output: output)
                cancellation.attach(worker.guardian)
                defer { cancellation.attach(nil) }
                let watch = JobWatch(channel: worker.channel.number, guardian: worker.guardian, wall: job.allowance.wall)
                record = try watch.follow(onProgress)
                if record.exit == nil { try zygote.replace(worker.control) }
            } catch {
                throw .unavailable(error)
            }
            if let exit = record.exit {
                counts.withLock { $0.cpuMicroseconds &+= exit.cpuMicroseconds }
                onExit(exit)
            }
            if cancellation.isCancelled { throw .cancelled }
            if record.isTimedOut { throw record.exit == nil ? .zygoteUnresponsive : .wallClockTimeout }
            if let misbehaviour = record.misbehaviour { throw .misbehaved(misbehaviour) }
            if let exit = record.exit {
                let (result, codecs) = try checkedResult(record, exit, output, job)
                return (result, codecs, exit)
            }
            guard ftruncate(output.number, 0) == 0 else { throw .unavailable(.last("ftruncate")) }
        }
        throw .unavailable(SystemError("zygote", code: ECHILD))
    }

    /// The ``WorkerJob/taskLimit`` of a worker that starts now.
    private static var taskLimit: Int {
        let count = Int(clamping: clinux_task_count())
        return count > 0 ? count.addingReportingOverflow(TaskBudget.spareTasks).partialValue : 0
    }

    private func checkedResult(
        _ record: JobWatch.Record, _ exit: WorkerExit, _ output: SharedDescriptor, _ job: WorkerJob
    ) throws(SandboxError) -> (TranscodeResult, codecs: String?) {
        if let failure = Self.failure(exit, job, hasBegun: record.hasBegun) { throw failure }
        let reply = record.reply
        if let failure = reply?.failure { throw .rejected(failure) }
        guard let result = reply?.result else { throw .crashed(exit) }
        guard job.transcoder.allows(result) else { throw .invalidOutput(.outOfRange) }
        let claim = OutputClaim(job.transcoder, result)
        let codecs = try translating(
            try OutputInspection.inspect(output, as: claim, limit: job.allowance.output), to: SandboxError.invalidOutput)
        return (result, codecs)
    }

    /// Returns the error for the end of a worker process; nil for a normal end.
    ///
    /// A source that has taken over its worker chooses the exit code. Codes that would blame the server are therefore trusted
    /// only before the worker has begun with the source, or if the server finds the cause itself.
    ///
    /// - Parameter lacksThreads: Whether an encoder's threads cannot be started.
    static func failure(
        _ exit: WorkerExit, _ job: WorkerJob, hasBegun: Bool, lacksThreads: (WorkerJob) -> Bool = JobSupervisor.lacksThreads
    ) -> SandboxError? {
        switch (exit.code, exit.signal) {
        case (0, _): nil
        case (WorkerExit.notForked, _): .unavailable(SystemError("fork", code: EAGAIN))
        case (Worker.ExitCode.setUpFailed.rawValue, _) where !hasBegun,
            (Worker.ExitCode.inputUnreadable.rawValue, _) where !hasBegun:
            .unavailable(SystemError("the worker could not set itself up", code: ECHILD))
        case (Worker.ExitCode.threadsRefused.rawValue, _) where lacksThreads(job):
            .unavailable(SystemError("the worker could not start threads", code: EAGAIN))
        case (_, SIGXCPU): .cpuLimitExceeded
        // The hard limit is a second above the soft limit. The kernel enforces it with SIGKILL.
        case (_, SIGKILL) where exit.cpuMicroseconds / 1_000_000 >= job.allowance.cpu: .cpuLimitExceeded
        case (_, SIGKILL), (_, SIGTERM), (_, SIGINT), (_, SIGHUP): .killed(exit)
        default: .crashed(exit)
        }
    }

    static func lacksThreads(_ job: WorkerJob) -> Bool {
        // The worker has ended, so its threads are free again.
        clinux_can_start_threads(Int32(TaskBudget.least)) == 0
            || job.taskLimit > 0 && Int(clamping: clinux_task_count()) >= job.taskLimit
    }
}

/// Cancels a job, before or while it runs. Thread-safe.
package final class JobCancellation: Sendable {
    private struct State {
        var isCancelled = false
        /// The server's end of the running worker's guardian socket.
        var guardian: SharedDescriptor?
    }

    private let state = Mutex(State())

    package init() {}

    package var isCancelled: Bool { state.withLock { $0.isCancelled } }

    /// Cancels the job. A running worker is killed.
    package func cancel() {
        state.withLock { state in
            state.isCancelled = true
            if let guardian = state.guardian { Self.abandon(guardian) }
        }
    }

    /// Sets the socket through which the running worker can be killed; nil once the worker has ended.
    func attach(_ guardian: SharedDescriptor?) {
        state.withLock { state in
            state.guardian = guardian
            if state.isCancelled, let guardian { Self.abandon(guardian) }
        }
    }

    /// Makes the zygote kill the worker of a guardian socket. The report of the worker's end still arrives.
    static func abandon(_ guardian: SharedDescriptor) {
        shutdown(guardian.number, Int32(SHUT_WR))
    }
}

internal import CLinux
internal import Glibc
package import Media
package import SystemIO

/// Follows one worker from its fork to its end; blocks the calling thread meanwhile. Any number of threads may.
///
/// Believes nothing that a worker says: its message must be one and of the right form, its file is inspected, and both
/// only after the zygote has told that the process is gone, so that nothing can change any more.
package struct JobSupervisor: Sendable {
    /// What came of a job.
    package typealias Outcome = (result: TranscodeResult, exit: WorkerExit)

    /// A zygote that dies takes its workers with it, which is not their jobs' fault: so often is one begun.
    private static let attempts = 2

    private let zygote: Zygote
    package let counters: SandboxCounters

    package init(zygote: Zygote, counters: SandboxCounters = SandboxCounters()) {
        self.zygote = zygote
        self.counters = counters
    }

    /// Runs the job.
    ///
    /// - Parameters:
    ///   - input: The GIF, in a sealed memfd.
    ///   - output: An empty file open for reading and writing, written by position.
    ///   - cancellation: Ends the job before its time.
    /// - Throws: ``SandboxError``; what the output then holds is worthless.
    package func run(
        _ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor, cancellation: JobCancellation = JobCancellation()
    ) throws(SandboxError) -> Outcome {
        do throws(SandboxError) {
            let outcome = try attempt(job, input, output, cancellation)
            counters.count(.finished)
            return outcome
        } catch {
            counters.count(JobFate(error))
            throw error
        }
    }

    private func attempt(
        _ job: WorkerJob, _ input: SharedDescriptor, _ output: SharedDescriptor, _ cancellation: JobCancellation
    ) throws(SandboxError) -> Outcome {
        guard clinux_seals_are_immutable(clinux_memfd_seals(input.number)) != 0 else {
            throw .unavailable(SystemError("the input is not sealed", code: EPERM))
        }
        for _ in 0..<Self.attempts {
            let record: JobWatch.Record
            do throws(SystemError) {
                let worker = try zygote.launch(job, input: input, output: output)
                cancellation.attach(worker.guardian)
                defer { cancellation.attach(nil) }
                let watch = JobWatch(channel: worker.channel.number, guardian: worker.guardian, wall: job.allowance.wall)
                record = try watch.follow()
                if record.exit == nil { try zygote.replace(worker.control) }
            } catch {
                throw .unavailable(error)
            }
            if let exit = record.exit { counters.add(cpuMicroseconds: exit.cpuMicroseconds) }
            if cancellation.isCancelled { throw .cancelled }
            if record.isTimedOut { throw .timeout }
            if let misbehaviour = record.misbehaviour { throw .misbehaved(misbehaviour) }
            if let exit = record.exit {
                return (try result(record.reply, exit, output, job), exit)
            }
            guard ftruncate(output.number, 0) == 0 else { throw .unavailable(.last("ftruncate")) }
        }
        throw .unavailable(SystemError("zygote", code: ECHILD))
    }

    private func result(
        _ reply: WorkerMessage?, _ exit: WorkerExit, _ output: SharedDescriptor, _ job: WorkerJob
    ) throws(SandboxError) -> TranscodeResult {
        if exit.code == WorkerExit.notForked { throw .unavailable(SystemError("fork", code: EAGAIN)) }
        guard exit.code == 0 else { throw exit.signal == SIGXCPU ? .timeout : .crashed(exit) }
        if let failure = reply?.failure { throw .rejected(failure) }
        guard let result = reply?.result else { throw .crashed(exit) }
        do throws(OutputFlaw) {
            try OutputInspection.inspect(output, as: OutputClaim(job.transcoder.output, result), limit: job.allowance.output)
        } catch {
            throw .invalidOutput(error)
        }
        return result
    }
}

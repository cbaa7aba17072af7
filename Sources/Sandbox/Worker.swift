internal import CLinux
internal import Glibc
internal import Media

/// The inside of a worker process: one job, then its end.
///
/// Runs in a child that the zygote forked. Its descriptors are the GIF, the output and the channel to the server, and
/// no others; its limits hold before a byte of the GIF is read.
enum Worker {
    private static let input: Int32 = 3
    private static let output: Int32 = 4
    private static let channel: Int32 = 5

    /// Exit codes, for the log; the server goes by the message.
    private enum ExitCode: Int32 {
        case done = 0
        case setUpFailed = 70
        case inputUnreadable = 71
        case serverGone = 72
    }

    /// Does the job and ends the process.
    ///
    /// - Parameters:
    ///   - descriptors: Input, output and channel as the zygote received them.
    static func run(_ job: WorkerJob, descriptors: [Int32]) -> Never {
        clinux_reset_signals()
        clinux_name_thread("gifreel-job")
        // The zygote may have ended before this call; then the parent is another, and the channel is dead anyhow.
        guard clinux_die_with_parent() == 0, clinux_no_new_privileges() == 0,
            clinux_keep_only(descriptors, Int32(descriptors.count)) == 0
        else { _exit(ExitCode.setUpFailed.rawValue) }
        // Writing over the limit is to fail with EFBIG, not to kill.
        signal(SIGXFSZ, SIG_IGN)
        var limits = clinux_limits(
            memory: UInt64(job.allowance.memory), cpu_seconds: UInt64(job.allowance.cpu),
            file_bytes: UInt64(job.allowance.output), descriptors: 16)
        guard clinux_set_limits(&limits) == 0 else { _exit(ExitCode.setUpFailed.rawValue) }

        guard let gif = mapInput() else { _exit(ExitCode.inputUnreadable.rawValue) }
        let reply: WorkerMessage
        do throws(TranscodeError) {
            reply = WorkerMessage(try job.transcoder.convert(gif, to: output))
        } catch {
            reply = WorkerMessage(error)
        }
        let sent: Void? = try? MessageChannel(socket: channel).send(reply)
        // No clean-up: the kernel takes everything back faster.
        _exit(sent == nil ? ExitCode.serverGone.rawValue : ExitCode.done.rawValue)
    }

    private static func mapInput() -> UnsafeRawBufferPointer? {
        var status = stat()
        guard fstat(input, &status) == 0 else { return nil }
        let size = Int(status.st_size)
        if size == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
        guard let base = mmap(nil, size, PROT_READ, MAP_PRIVATE, input, 0), base != MAP_FAILED else { return nil }
        return UnsafeRawBufferPointer(start: base, count: size)
    }
}

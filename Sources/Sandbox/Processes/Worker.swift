internal import CLinux
internal import Glibc
internal import Media

/// The code of a worker process, which runs one job and ends.
///
/// The worker is a child that the zygote forked (``SpareWorker``). Before it reads a byte of the source, its limits are set,
/// all descriptors but the output and the channel to the server are closed, and only system calls that compute, write the
/// output and send on the channel are permitted.
enum Worker {
    private static let input: Int32 = 3
    static let output: Int32 = 4
    static let channel: Int32 = 5

    /// The size of the contiguous heap, in bytes. The kernel commits pages as they are used.
    static let heap = 76 << 20
    /// The bytes of the heap that every job uses.
    static let leastHeap = 4 << 20
    /// The bytes of the heap that are in large pages for every source.
    static let largePages = 30 << 20
    /// The largest canvas, in pixels, for which the whole heap is in large pages (a third fewer page faults, 4 % less time).
    /// Larger canvases would leave too much of these pages unused.
    private static let pixelsInLargePages = 290_000
    /// The bytes that a worker may use beyond its job's limit, for x264's tables and fragmentation.
    private static let slack = 30 << 20

    /// The minimum time between two progress reports, and before the first report: short jobs send none.
    static let reportInterval: Duration = .milliseconds(100)

    /// The process that a worker is forked from.
    struct Parent {
        /// The zygote's process ID.
        var zygote: pid_t
        /// The size in bytes of the zygote's address space, and of each worker's when it begins.
        var memory: Int
        var confinement: Confinement
        var memoryPriority: MemoryPriority?
    }

    /// Exit codes of a worker process.
    enum ExitCode: Int32 {
        case done = 0
        case setUpFailed = 70
        case inputUnreadable = 71
        case serverGone = 72
        case threadsRefused = 73
    }

    /// Runs the job and ends the process.
    ///
    /// - Parameter descriptors: Input, output and channel, as received by the zygote.
    static func run(_ job: WorkerJob, descriptors: [Int32], parent: Parent) -> Never {
        clinux_name_thread("gifreel-job")
        #if DEBUG
            inject(job.fault, at: .begun)
        #endif
        // If the zygote ended before the death signal was set up, the parent is another process by now.
        guard clinux_die_with_parent() == 0, getppid() == parent.zygote,
            clinux_keep_only(descriptors, Int32(descriptors.count)) == 0
        else { _exit(ExitCode.setUpFailed.rawValue) }
        guard let gif = mapInput() else { _exit(ExitCode.inputUnreadable.rawValue) }
        for descriptor in [0, 1, 2, input] { close(descriptor) }
        let pixels = SourceFormat.canvasPixels(of: gif)
        clinux_commit_heap(heapInUse(by: job, pixels: pixels), pixels <= pixelsInLargePages ? heap : largePages)
        guard setLimits(job, parent, input: gif.count), setFilter(job, parent) else { _exit(ExitCode.setUpFailed.rawValue) }
        #if DEBUG
            inject(job.fault, at: .confined)
        #endif

        // Even if the source takes over this process, the server already has the message; see ``JobSupervisor``.
        guard (try? MessageChannel(socket: channel).send(WorkerMessage.begun)) != nil else {
            _exit(ExitCode.serverGone.rawValue)
        }
        let reply = convert(gif, job)
        // An encoder that cannot start a thread fails in ways that name other causes, such as a lack of memory.
        if reply.failure?.mayComeFromThreads ?? false, job.transcoder.startsThreads, clinux_can_start_threads(1) == 0 {
            _exit(ExitCode.threadsRefused.rawValue)
        }
        #if DEBUG
            inject(job.fault, at: .converted(reply))
        #endif
        let sent: Void? = try? MessageChannel(socket: channel).send(reply)
        #if DEBUG
            inject(job.fault, at: .replied(reply))
        #endif
        // Skips the clean-up: the kernel releases everything faster.
        _exit(sent == nil ? ExitCode.serverGone.rawValue : ExitCode.done.rawValue)
    }

    private static func convert(_ gif: UnsafeRawBufferPointer, _ job: WorkerJob) -> WorkerMessage {
        errno = 0
        var reportedAt = ContinuousClock.now
        do throws(TranscodeError) {
            let result = try job.transcoder.convert(gif, to: output) { progress in
                let now = ContinuousClock.now
                guard now - reportedAt >= reportInterval else { return }
                reportedAt = now
                // If the server is gone, the reply fails too.
                try? MessageChannel(socket: channel).send(WorkerMessage.progress(progress))
            }
            return WorkerMessage.result(result)
        } catch {
            // x264 has one code for all failures, but a failed allocation leaves ENOMEM in `errno`.
            if case .failed = error, errno == ENOMEM { return WorkerMessage.failure(.outOfMemory) }
            return WorkerMessage.failure(error)
        }
    }

    /// Maps the source. It is sealed: no process can change or truncate it.
    private static func mapInput() -> UnsafeRawBufferPointer? {
        let size = Int(lseek(input, 0, SEEK_END))
        guard size >= 0 else { return nil }
        if size == 0 { return UnsafeRawBufferPointer(start: nil, count: 0) }
        guard let base = mmap(nil, size, PROT_READ, MAP_PRIVATE, input, 0), base != MAP_FAILED else { return nil }
        return UnsafeRawBufferPointer(start: base, count: size)
    }

    /// The minimum heap bytes per pixel of a video. Depending on the number of frames, a video uses up to four times as many.
    private static let leastBytesPerPixel = 50

    /// Returns the minimum heap bytes of the job. The planes of large canvases are outside the heap.
    private static func heapInUse(by job: WorkerJob, pixels: Int) -> Int {
        let size = job.transcoder.options.size
        guard job.transcoder.output.traits.kind == .video, size.width == nil, size.height == nil else { return leastHeap }
        // Headers may claim up to 2⁶² pixels, whose product would overflow.
        let (least, overflow) = pixels.multipliedReportingOverflow(by: leastBytesPerPixel)
        return overflow ? largePages : min(leastHeap + min(least, largePages), largePages)
    }

    private static func setLimits(_ job: WorkerJob, _ parent: Parent, input: Int) -> Bool {
        let allowed = slack + max(0, job.allowance.memory)
        // A limit does not release memory that is already allocated.
        if allowed < heap { clinux_trim_heap() }
        var limits = clinux_limits(
            memory: UInt64(max(0, parent.memory + input + allowed)),
            cpu_seconds: UInt64(max(1, job.allowance.cpu)), file_bytes: UInt64(max(1, job.allowance.output)),
            tasks: UInt64(max(0, job.taskLimit)),
            descriptors: UInt64(channel) + 1)
        return clinux_set_limits(&limits) == 0
    }

    private static func setFilter(_ job: WorkerJob, _ parent: Parent) -> Bool {
        // A kernel that could not filter the zygote cannot filter its workers. The server reports this at startup.
        guard parent.confinement.filtersCalls else { return true }
        var calls = clinux_worker_calls(file: output, channel: channel, threads: job.transcoder.startsThreads ? 1 : 0)
        return clinux_allow_worker_calls(&calls) == 1
    }
}

extension TranscodeError {
    /// Whether an encoder that could not start its threads may have caused the error.
    fileprivate var mayComeFromThreads: Bool {
        switch self {
        case .failed, .outOfMemory: true
        default: false
        }
    }
}

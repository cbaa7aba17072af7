#if DEBUG
    internal import CLinux
    internal import Glibc
    internal import Media

    /// Faults that tests inject into a worker. Not in release builds.
    extension Worker {
        enum Stage {
            case begun
            case confined
            case converted(WorkerMessage)
            case replied(WorkerMessage)
        }

        static func inject(_ fault: WorkerFault?, at stage: Stage) {
            guard let fault else { return }
            switch stage {
            case .begun:
                if fault == .killedWhenBegun { end() }
                if fault == .noThreads, clinux_refuse_threads() != 0 { end() }
            case .confined:
                if fault == .killedWhenConfined { raise(SIGABRT) }
                attempt(fault)
            case .converted(let reply):
                if fault == .killedWhenConverted { raise(SIGABRT) }
                misuseOutput(fault)
                misuseChannel(fault, reply)
            case .replied(let reply):
                if fault == .killedWhenReplied { raise(SIGABRT) }
                if fault == .twoReplies { send(reply) }
                if fault == .progressAfterReply { send(.progress(FrameProgress(done: 1, total: 5))) }
            }
        }

        private static func end() {
            kill(getpid(), SIGKILL)
        }

        /// Attempts to leave the sandbox. Under a filter, none of these calls returns.
        private static func attempt(_ fault: WorkerFault) {
            switch fault {
            case .openFile: _ = open("/etc/passwd", O_RDONLY)
            case .makeFile: mkdir("/tmp/gifreel-escaped", 0o700)
            case .readProc: _ = open("/proc/self/environ", O_RDONLY)
            case .connect: _ = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            case .execute:
                var arguments: [UnsafeMutablePointer<CChar>?] = [strdup("true"), nil]
                execv("/bin/true", &arguments)
            case .trace: clinux_trace(getpid())
            case .signalParent: kill(getppid(), SIGKILL)
            case .fork: if clinux_fork() == 0 { _exit(0) }
            case .mapCode: mmap(nil, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            case .writeChannelAsFile: pwrite(channel, "x", 1, 0)
            case .threads: _exit(startThreads() ? 0 : 1)
            case .hang: while true { sched_yield() }
            case .spin: while true {}
            default: break
            }
        }

        /// Tries to start more threads than a worker may have. Returns false if that fails.
        private static func startThreads() -> Bool {
            var attributes = pthread_attr_t()
            pthread_attr_init(&attributes)
            pthread_attr_setstacksize(&attributes, 16 << 10)
            let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
            pthread_mutex_init(lock, nil)
            pthread_mutex_lock(lock)
            for _ in 0..<2 * 4096 {
                var thread = pthread_t()
                let code = pthread_create(
                    &thread, &attributes,
                    { lock in
                        if let lock { pthread_mutex_lock(lock.assumingMemoryBound(to: pthread_mutex_t.self)) }
                        return nil
                    }, lock)
                if code != 0 { return false }
            }
            return true
        }

        private static func misuseOutput(_ fault: WorkerFault) {
            switch fault {
            case .shortFile: ftruncate(output, 100)
            case .garbledFile: pwrite(output, "xxxx", 4, 4)
            case .foreignFile:
                let html = "<html><script>alert(1)</script>"
                ftruncate(output, 0)
                pwrite(output, html, html.utf8.count, 0)
            default: break
            }
        }

        private static func misuseChannel(_ fault: WorkerFault, _ reply: WorkerMessage) {
            switch fault {
            case .silentEnd: _exit(0)
            case .noMessage: sendBytes(3)
            case .shortMessage: sendBytes(WorkerMessage.byteCount - 8)
            case .unknownMessage:
                var words = reply.words
                words[0] = 77
                words.withUnsafeBytes { _ = clinux_send_message(channel, $0.baseAddress, $0.count, nil, 0) }
            case .flood: while true { send(reply) }
            case .progressFlood: while true { send(.progress(FrameProgress(done: 1, total: 5))) }
            case .absurdProgress:
                send(.progress(FrameProgress(done: 6, total: 5)))
                _exit(0)
            case .forgedExit: send(WorkerMessage.exit(WorkerExit(code: 0, signal: nil, cpuMicroseconds: 0, peakBytes: 0)))
            case .sentDescriptor: try? MessageChannel(socket: channel).send(reply, descriptors: [output])
            case .emptyMessageWithDescriptor: clinux_send_message(channel, nil, 0, [output], 1)
            case .negativeFailureValue:
                send(WorkerMessage.failure(.startPastEnd(start: 0, duration: .min)))
                _exit(0)
            case .wrongLength, .wrongSize, .wrongDuration, .wrongSampleCount, .absurdSourceWidth, .absurdSourceHeight,
                .absurdLoopCount:
                guard var result = reply.result else { return }
                switch fault {
                case .wrongLength: result.bytes += 1
                case .wrongSize: result.width += 2
                case .wrongDuration: result.duration += 1
                case .absurdSourceWidth: result.sourceWidth = 65_537
                case .absurdSourceHeight: result.sourceHeight = .min
                case .absurdLoopCount: result.loopCount = .max
                default: result.samples += 1
                }
                send(WorkerMessage.result(result))
                _exit(0)
            default: break
            }
        }

        private static func send(_ message: WorkerMessage) {
            try? MessageChannel(socket: channel).send(message)
        }

        private static func sendBytes(_ count: Int) {
            let bytes = [UInt8](repeating: 1, count: count)
            clinux_send_message(channel, bytes, count, nil, 0)
        }
    }
#endif

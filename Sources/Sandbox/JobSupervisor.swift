internal import Glibc
package import Media
package import SystemIO

/// Follows one worker from its fork to its end; blocks the calling thread meanwhile. Any number of threads may.
package struct JobSupervisor: Sendable {
    private let zygote: Zygote
    private let clock = ContinuousClock()

    package init(zygote: Zygote) {
        self.zygote = zygote
    }

    /// Runs the job.
    ///
    /// - Parameters:
    ///   - input: The GIF, which nobody changes.
    ///   - output: An empty file open for reading and writing, written by position.
    /// - Throws: ``SandboxError``; what the output then holds is worthless.
    package func run(
        _ job: WorkerJob, input: SharedDescriptor, output: SharedDescriptor
    ) throws(SandboxError) -> (result: TranscodeResult, exit: WorkerExit?) {
        let channel: OwnedDescriptor
        do throws(SystemError) {
            channel = try zygote.launch(job, input: input, output: output)
        } catch {
            throw .unavailable(error)
        }
        let deadline = clock.now.advanced(by: .seconds(job.allowance.wall))
        var reply: WorkerMessage?
        var exit: WorkerExit?
        while exit == nil {
            guard waitUntilReadable(channel.number, until: deadline) else { throw .timeout }
            let received: MessageChannel.Received?
            do throws(SystemError) {
                received = try MessageChannel(socket: channel.number).receive()
            } catch {
                throw .unavailable(error)
            }
            guard let received else { break }
            for descriptor in received.descriptors { close(descriptor) }
            if let message = received.message?.exit {
                exit = message
            } else if reply == nil {
                reply = received.message
            }
        }
        if let failure = reply?.failure { throw .rejected(failure) }
        guard let result = reply?.result, exit?.code == 0 else {
            throw exit?.signal == SIGXCPU ? .timeout : .crashed(exit)
        }
        guard Self.isWhole(output, result, job.transcoder.output) else { throw .invalidOutput }
        return (result, exit)
    }

    private func waitUntilReadable(_ descriptor: Int32, until deadline: ContinuousClock.Instant) -> Bool {
        while true {
            let left = clock.now.duration(to: deadline)
            if left <= .zero { return false }
            let milliseconds = min(left.components.seconds * 1000 + 1 + left.components.attoseconds / 1_000_000_000_000_000, 60_000)
            var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let count = poll(&polled, 1, Int32(milliseconds))
            if count > 0 { return true }
            if count < 0 && errno != EINTR { return false }
        }
    }

    /// Whether the output is as long as the worker says and begins as its format does.
    private static func isWhole(_ output: SharedDescriptor, _ result: TranscodeResult, _ format: OutputFormat) -> Bool {
        var status = stat()
        guard fstat(output.number, &status) == 0, Int(status.st_size) == result.bytes else { return false }
        if format == .facts { return result.bytes == 2 * result.frames }
        var head = [UInt8](repeating: 0, count: 12)
        guard pread(output.number, &head, head.count, 0) == head.count else { return false }
        switch format {
        case .mp4: return head[4..<8].elementsEqual("ftyp".utf8)
        case .jpg: return head.starts(with: [0xff, 0xd8, 0xff])
        case .png: return head.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
        case .webp: return head.starts(with: "RIFF".utf8) && head[8...].elementsEqual("WEBP".utf8)
        case .facts: return true
        }
    }
}

internal import Glibc
internal import Media
internal import SystemIO

/// The wait for the reply and the end of one worker.
///
/// The worker replies on its channel; only the zygote writes to the guardian socket. Once the zygote has reported the end, the
/// worker can neither send nor write anything more.
struct JobWatch {
    /// The messages received. If there is no exit, the zygote is dead or does not respond.
    struct Record {
        /// Whether the worker has begun with the source. From then on, the source may be at fault.
        var hasBegun = false
        var reply: WorkerMessage?
        var exit: WorkerExit?
        var misbehaviour: SandboxError.Misbehaviour?
        var isTimedOut = false
    }

    /// The timeout for a zygote to kill a worker and report its end.
    private static let grace: Duration = .seconds(10)

    /// The number of progress reports that a worker may send beyond those that its running time allows.
    private static let spareReports = 100

    private let channel: Int32
    private let guardian: SharedDescriptor
    private var deadline: ContinuousClock.Instant
    private var isEnding = false
    private var isChannelOpen = true
    private var record = Record()
    private let begin = ContinuousClock.now
    private var reports = 0

    init(channel: Int32, guardian: SharedDescriptor, wall: Int) {
        self.channel = channel
        self.guardian = guardian
        deadline = .now.advanced(by: .seconds(wall))
    }

    /// Blocks until the worker has ended.
    ///
    /// - Parameter onProgress: Called for each progress report of the worker.
    consuming func follow(_ onProgress: (FrameProgress) -> Void) throws(SystemError) -> Record {
        while true {
            let ready = poll(until: deadline)
            if ready.channel {
                try listen(onProgress)
            } else if ready.guardian {
                // A reply that was sent before the end has arrived by now, but perhaps after the channel was polled.
                if isChannelOpen && Self.isReadable(channel) {
                    try listen(onProgress)
                    continue
                }
                record.exit = try MessageChannel(socket: guardian.number).receive()?.message?.exit
                return record
            } else if isEnding {
                return record
            } else {
                record.isTimedOut = true
                end()
            }
        }
    }

    /// Makes the zygote kill the worker. The caller continues to wait for the worker's end.
    private mutating func end() {
        isEnding = true
        deadline = .now.advanced(by: Self.grace)
        JobCancellation.abandon(guardian)
    }

    private mutating func listen(_ onProgress: (FrameProgress) -> Void) throws(SystemError) {
        let received: MessageChannel.Received?
        do throws(SystemError) {
            received = try MessageChannel(socket: channel).receive()
        } catch {
            guard error.code == EMSGSIZE else { throw error }
            return reject(.garbledMessage)
        }
        guard let received else {
            isChannelOpen = false
            return
        }
        for descriptor in received.descriptors { close(descriptor) }
        if !received.descriptors.isEmpty { return reject(.sentDescriptors) }
        if received.message == .begun {
            if record.hasBegun || record.reply != nil { reject(.surplusMessage) }
            record.hasBegun = true
            return
        }
        if let progress = received.message?.progress { return report(progress, onProgress) }
        guard let message = received.message, message.result != nil || message.failure != nil else {
            return reject(.garbledMessage)
        }
        if record.reply != nil { return reject(.surplusMessage) }
        record.reply = message
    }

    /// Passes on a progress report. Ends a worker that sends too many reports, or a report after its reply.
    private mutating func report(_ progress: FrameProgress, _ onProgress: (FrameProgress) -> Void) {
        reports += 1
        let allowed = Self.spareReports + Int(begin.duration(to: .now) / Worker.reportInterval)
        guard record.reply == nil, reports <= allowed else { return reject(.surplusMessage) }
        onProgress(progress)
    }

    /// Records the first violation of the protocol and ends the worker.
    private mutating func reject(_ misbehaviour: SandboxError.Misbehaviour) {
        record.misbehaviour = record.misbehaviour ?? misbehaviour
        isChannelOpen = false
        if !isEnding { end() }
    }

    private static func isReadable(_ descriptor: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Glibc.poll(&polled, 1, 0) > 0
    }

    private func poll(until deadline: ContinuousClock.Instant) -> (channel: Bool, guardian: Bool) {
        while true {
            let left = ContinuousClock.now.duration(to: deadline)
            if left <= .zero { return (false, false) }
            let milliseconds = min(left / .milliseconds(1) + 1, 60_000)
            var polled = [
                pollfd(fd: isChannelOpen ? channel : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: guardian.number, events: Int16(POLLIN), revents: 0),
            ]
            let count = Glibc.poll(&polled, 2, Int32(milliseconds))
            if count > 0 { return (polled[0].revents != 0, polled[1].revents != 0) }
            if count < 0 && errno != EINTR { return (false, false) }
        }
    }
}

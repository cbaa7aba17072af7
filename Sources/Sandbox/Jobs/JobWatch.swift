internal import Glibc
internal import Media
internal import SystemIO

/// Waits for the reply of one worker and for its end.
///
/// The worker replies on its channel; only the zygote writes to the guardian socket. Once the zygote has reported the end, the
/// worker can neither send nor write anything more.
struct JobWatch {
    /// The messages received. Without an exit the zygote is dead or does not respond.
    struct Record {
        /// Whether the worker has begun with the source, so that the source may be at fault from then on.
        var hasBegun = false
        var reply: WorkerMessage?
        var exit: WorkerExit?
        var misbehaviour: SandboxError.Misbehaviour?
        var isTimedOut = false
    }

    /// The time in which a zygote must kill a worker and report its end.
    private static let grace: Duration = .seconds(10)

    /// Reports of progress that a worker may send at once, in addition to those that its time allows.
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
    /// - Parameter onProgress: Called for each report of the worker.
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

    /// Has the zygote kill the worker. The caller goes on waiting for its end.
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
        guard let message = received.message, message.isReply else { return reject(.garbledMessage) }
        if record.reply != nil { return reject(.surplusMessage) }
        record.reply = message
    }

    /// Passes a report on. A worker that sends more of them than it may, or any after its reply, is ended.
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

extension WorkerMessage {
    /// Whether a worker may send such a message.
    fileprivate var isReply: Bool { result != nil || failure != nil }
}

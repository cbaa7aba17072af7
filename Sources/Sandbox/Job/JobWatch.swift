internal import Glibc
internal import SystemIO

/// Waits for what one worker says and for its end.
///
/// The worker speaks on its channel, the zygote alone on the guard. The end counts when the guard tells it; then the
/// worker can neither say nor write anything more.
struct JobWatch {
    /// What was heard. No exit means that the zygote is gone, or as good as gone.
    struct Record {
        var reply: WorkerMessage?
        var exit: WorkerExit?
        var misbehaviour: SandboxError.Misbehaviour?
        var isTimedOut = false
    }

    /// How long a zygote may take to kill a worker and tell of it.
    private static let grace: Duration = .seconds(10)

    private let channel: Int32
    private let guardian: SharedDescriptor
    private var deadline: ContinuousClock.Instant
    private var isEnding = false
    private var isChannelOpen = true
    private var record = Record()

    init(channel: Int32, guardian: SharedDescriptor, wall: Int) {
        self.channel = channel
        self.guardian = guardian
        deadline = .now.advanced(by: .seconds(wall))
    }

    /// Blocks until the worker has ended.
    consuming func follow() throws(SystemError) -> Record {
        while true {
            let ready = poll(until: deadline)
            if ready.channel {
                try listen()
            } else if ready.guardian {
                // What the worker said before its end is there by now, though it may have come after the look at its channel.
                if isChannelOpen && Self.isReadable(channel) {
                    try listen()
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

    /// Has the worker killed, and goes on waiting for its end.
    private mutating func end() {
        isEnding = true
        deadline = .now.advanced(by: Self.grace)
        JobCancellation.abandon(guardian)
    }

    private mutating func listen() throws(SystemError) {
        let received: MessageChannel.Received?
        do throws(SystemError) {
            received = try MessageChannel(socket: channel).receive()
        } catch {
            guard error.code == EMSGSIZE else { throw error }
            return complain(.garbledMessage)
        }
        guard let received else {
            isChannelOpen = false
            return
        }
        for descriptor in received.descriptors { close(descriptor) }
        if !received.descriptors.isEmpty { return complain(.sentDescriptors) }
        guard let message = received.message, message.isReply else { return complain(.garbledMessage) }
        if record.reply != nil { return complain(.surplusMessage) }
        record.reply = message
    }

    private mutating func complain(_ misbehaviour: SandboxError.Misbehaviour) {
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
    /// Whether it is of a kind that workers send.
    fileprivate var isReply: Bool { result != nil || failure != nil }
}

internal import SystemIO

/// A client's connection: where it stands, and what it leaves for its next turn. It belongs to one loop thread.
///
/// It stays small, so that an idle one costs a few hundred bytes: buffers exist only while something is under way.
final class Connection {
    enum Phase {
        /// Between requests, or within a head.
        case reading
        /// A sink takes the request's body.
        case receiving
        /// A task works on the answer.
        case waiting
        /// The answer is made, and sent when those of the others are made that had something in the same turn.
        case staged
        /// The socket takes no more for now.
        case sending
        /// The next piece of a streamed body is not there yet.
        case streaming
        /// The answer is sent; the rest of the body that nobody wanted is read and dropped.
        case discarding
        /// The sending half is closed; what still comes is read and dropped, so that no reset destroys the answer.
        case lingering
        case closed
    }

    let socket: OwnedDescriptor
    let token: ConnectionToken
    let peer: IPAddress?

    var phase = Phase.reading
    /// Whether the kernel may have input, as the last report and the last read tell.
    var isReadable = false
    /// Whether the kernel may take output.
    var isWritable = true
    /// Whether the client has closed its sending half.
    var peerHasClosed = false
    /// When the loop looks after it, in nanoseconds of its clock.
    var deadline = UInt64.max
    /// When it last went idle.
    var idleSince: UInt64 = 0
    /// Nanoseconds between two probes of a client that has closed its sending half.
    var probeInterval: UInt64 = 0
    /// What may still be moved in this turn, in bytes.
    var budget = 0
    /// Whether it stands in the loop's list of those that have more to do.
    var isQueued = false

    /// Bytes that have arrived and were not used yet.
    var unread: [UInt8] = []
    /// Whether `unread` is the start of a head that has been looked at.
    var isWithinHead = true
    /// Whether something follows the current request in the read buffer.
    var hasPipelined = false

    var exchange = Exchange()
    /// The request's head, kept while the answer is waited for.
    var keptHead: [UInt8] = []
    /// What the access log will say, kept where the answer is not sent in one go.
    var draft: AccessDraft?
    /// The request's body, as far as it has not been read.
    var body: BodyDecoder?
    /// Bytes of it that were read and dropped.
    var discarded = 0
    var reception: Reception?
    /// What is to be sent, in order.
    var outgoing: [Segment] = []
    /// Bytes sent on the connection in all.
    var sentBytes = 0
    /// Bytes that had moved when the rate was last looked at.
    var rateMark = 0
    /// The task that makes the answer or the streamed body.
    var task: Task<Void, Never>?
    var stream: StreamState?

    init(socket: consuming OwnedDescriptor, generation: UInt32, peer: IPAddress?) {
        token = ConnectionToken(descriptor: socket.number, generation: generation)
        self.socket = socket
        self.peer = peer
    }

    /// Nothing is under way: the connection could be closed without anybody losing anything.
    var isIdle: Bool {
        if case .reading = phase { unread.isEmpty } else { false }
    }
}

/// A request's body on its way to its sink.
struct Reception {
    let sink: any HTTPBodySink
    /// The most bytes it may have.
    let limit: Int
    /// When all of it must have arrived, in nanoseconds of the loop's clock.
    let deadline: UInt64
    /// Bytes so far.
    var count = 0
}

/// A streamed body on its way to its client. Few connections have one, so it is not a part of each.
final class StreamState {
    /// Whether pieces go out as chunks; else the end of the connection is the end of the body.
    let isChunked: Bool
    /// Whom to tell when the current piece is sent.
    var continuation: CheckedContinuation<Bool, Never>?
    /// The body is complete but for what is in `outgoing`.
    var hasEnded = false

    init(isChunked: Bool) {
        self.isChunked = isChunked
    }
}

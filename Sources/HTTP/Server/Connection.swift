internal import SystemIO

/// A client connection: its state and the pending work for its next turn. Used by one loop thread.
///
/// An idle connection takes only a few hundred bytes: buffers exist only while a request is in progress.
final class Connection {
    enum Phase {
        /// Between requests, or within a head.
        case reading
        /// A sink receives the request's body.
        case receiving
        /// A task computes the response.
        case waiting
        /// The response is encoded, and is sent at the end of the turn together with those of other connections.
        case staged
        /// The socket accepts no more bytes for now.
        case sending
        /// A thread reads the next piece of a file into the page cache.
        case loading
        /// The next piece of a streamed body is not available yet.
        case streaming
        /// The response is sent; the rest of a body without a sink is read and discarded.
        case discarding
        /// The sending half is closed; input is read and discarded, so that no reset destroys the response.
        case lingering
        case closed
    }

    let socket: OwnedDescriptor
    let token: ConnectionToken
    /// The peer's address; nil for a Unix socket.
    let peer: IPAddress?
    /// The client against whose limit the connection counts; nil if there is none.
    var client: ClientNetwork?
    /// Whether the client has reached its connection limit, so that any request is answered with 503.
    var isRefused = false
    /// Whether a request may reveal that the peer is a proxy missing from the settings.
    var mayBeProxy = false

    var phase = Phase.reading
    /// Whether the kernel may have input, according to the last report and the last read.
    var isReadable = false
    /// Whether the kernel may accept output.
    var isWritable = true
    /// Whether the client has closed its sending half.
    var peerHasClosed = false
    /// When the loop must check the connection again, in nanoseconds of its clock.
    var deadline = UInt64.max
    /// When the connection last became idle.
    var idleSince: UInt64 = 0
    /// Nanoseconds between probes of a client that has closed its sending half.
    var probeInterval: UInt64 = 0
    /// Bytes that the connection may still transfer in this turn.
    var budget = 0
    /// Whether the connection is queued because its turn ended before its work did.
    var isQueued = false

    /// Bytes that have arrived but were not consumed.
    var unread: [UInt8] = []
    /// Whether `unread` is the start of a head that was parsed as far as possible.
    var isWithinHead = true
    /// Whether more bytes follow the current request in the read buffer.
    var hasPipelined = false
    /// Whether further input belongs to no request, because the end of a refused request cannot be found.
    var hasUnusableInput = false

    var exchange = Exchange()
    /// The request's head, kept until its response is complete.
    var keptHead: [UInt8] = []
    /// The access log entry of a response that is sent over several turns.
    var draft: AccessDraft?
    /// The decoder for the unread rest of the request body.
    var body: BodyDecoder?
    /// Bytes of the body that were read and discarded.
    var discarded = 0
    var reception: Reception?
    /// The segments to be sent, in order.
    var outgoing: [Segment] = []
    /// The end of the current file's piece that was loaded for this connection; 0 if none was.
    var loadedEnd = 0
    var sentBytes = 0
    /// The number of bytes transferred at the start of the current rate window.
    var rateMark = 0
    /// When the current rate window began, in nanoseconds of the loop's clock.
    var windowStart: UInt64 = 0
    /// The task that computes the response or the streamed body.
    var task: Task<Void, Never>?
    var stream: BodyStream?

    init(socket: consuming OwnedDescriptor, generation: UInt32, peer: IPAddress?) {
        token = ConnectionToken(descriptor: socket.number, generation: generation)
        self.socket = socket
        self.peer = peer
    }

    /// Whether no work is in progress, so that closing the connection loses nothing.
    var isIdle: Bool {
        if case .reading = phase { !hasBegunRequest } else { false }
    }

    /// Whether part of the next request has arrived. A lone CR may begin an empty line, which belongs to no request.
    var hasBegunRequest: Bool { !unread.isEmpty && unread != [13] }

    /// Decodes the next step of the request body; nil if there is none.
    func nextBodyStep(
        _ bytes: UnsafeRawBufferPointer, at position: inout Int
    ) throws(HTTPProtocolError) -> BodyDecoder.Step? {
        guard var decoder = body else { return nil }
        let step = try decoder.next(bytes, at: &position)
        body = decoder
        return step
    }

    /// Keeps the head beyond its turn, because the response depends on its fields.
    func keepHead(_ head: RequestHead) {
        if keptHead.isEmpty { keptHead = Array(head.bytes.slice(0..<head.length)) }
    }

    /// Parses the kept head again and calls `body` with it. Returns false if no head was kept.
    func withKeptHead(_ parser: RequestHeadParser, _ body: (RequestHead) -> Void) -> Bool {
        let kept = keptHead
        keptHead = []
        return kept.withUnsafeBytes { bytes in
            var head = RequestHead()
            guard let isComplete = try? parser.parse(bytes, into: &head), isComplete else { return false }
            body(head)
            return true
        }
    }
}

/// The plain numbers of a request and its response, from the complete head to the last byte sent.
struct Exchange {
    /// When the head was complete, in nanoseconds of the loop's clock; 0 while no exchange is in progress.
    var started: UInt64 = 0
    /// The client, as reported by a trusted proxy or the connection.
    var client: IPAddress?
    /// The generated ID of the request; 0 if the client's ID is used.
    var generatedID: UInt64 = 0
    /// The response status; 0 until it is known.
    var status = 0
    /// The remaining nanoseconds for the client to receive the response. Received bytes extend it.
    var timeToSend: UInt64 = .max
    var headBytes = 0
    /// Bytes of the response that the kernel has accepted, including the head.
    var sentBytes = 0
    /// Whether the connection ends after this response.
    var closes = false
    /// Whether the client understands interim responses, which HTTP/1.0 lacks (RFC 9110 section 15.2).
    var allowsInterim = false
    /// Whether the client is waiting for `100 Continue`, which was not sent yet.
    var awaitsContinue = false

    /// Bytes of the response body sent so far.
    var bodyBytes: Int { max(0, sentBytes - headBytes) }
}

/// The state of receiving a request body for its sink.
struct Reception {
    let sink: any HTTPBodySink
    /// The maximum number of bytes.
    let limit: Int
    /// When the whole body must have arrived, in nanoseconds of the loop's clock.
    let deadline: UInt64
    /// Bytes received so far.
    var count = 0
}

internal import SystemIO

/// A client's connection: its state, and what remains for its next turn. It belongs to one loop thread.
///
/// It is small, so that an idle connection costs a few hundred bytes: buffers exist only while a request is in progress.
final class Connection {
    enum Phase {
        /// Between requests, or within a head.
        case reading
        /// A sink receives the request's body.
        case receiving
        /// A task computes the response.
        case waiting
        /// The response is complete and is sent together with those of the other connections in this turn.
        case staged
        /// The socket accepts no more bytes for now.
        case sending
        /// A thread reads the next piece of a file into the page cache.
        case loading
        /// The next piece of a streamed body is not available yet.
        case streaming
        /// The response is sent; the rest of a body that no sink wanted is read and dropped.
        case discarding
        /// The sending half is closed; incoming bytes are read and dropped, so that no reset destroys the response.
        case lingering
        case closed
    }

    let socket: OwnedDescriptor
    let token: ConnectionToken
    /// The address of the other end; nil for a Unix socket.
    let peer: IPAddress?
    /// The client for whose limit the connection counts; nil for none.
    var client: ClientNetwork?
    /// Whether the client is at its limit of connections; the response to any request then says so.
    var isRefused = false
    /// Whether a request may show that the peer is a proxy that the settings do not list.
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
    /// Nanoseconds between two probes of a client that has closed its sending half.
    var probeInterval: UInt64 = 0
    /// Bytes that the connection may still move in this turn.
    var budget = 0
    /// Whether the connection is in the queue of those whose turn ended before their work did.
    var isQueued = false

    /// Bytes that have arrived and are not used yet.
    var unread: [UInt8] = []
    /// Whether `unread` is the start of a head that was parsed as far as it goes.
    var isWithinHead = true
    /// Whether more bytes follow the current request in the read buffer.
    var hasPipelined = false
    /// Whether further input belongs to no request, because the end of a refused request cannot be found.
    var hasUnusableInput = false

    var exchange = Exchange()
    /// The request's head, kept while its response is not complete.
    var keptHead: [UInt8] = []
    /// The entry for the access log of a response that is sent in more than one turn.
    var draft: AccessDraft?
    /// The request's body, as far as it has not been read.
    var body: BodyDecoder?
    /// Bytes of the body that were read and dropped.
    var discarded = 0
    var reception: Reception?
    /// The segments to be sent, in order.
    var outgoing: [Segment] = []
    /// The end of the piece of the current file that was loaded for this connection; 0 for none.
    var loadedEnd = 0
    /// Bytes sent on the connection.
    var sentBytes = 0
    /// Bytes that had been transferred at the start of the current rate window.
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

    /// Whether nothing is in progress, so that closing the connection loses nothing.
    var isIdle: Bool {
        if case .reading = phase { !hasBegunRequest } else { false }
    }

    /// Whether a part of the next request has arrived. A CR alone may begin an empty line, which belongs to no request.
    var hasBegunRequest: Bool { !unread.isEmpty && unread != [13] }

    /// Decodes the next step of the request's body; nil without a body.
    func nextBodyStep(
        _ bytes: UnsafeRawBufferPointer, at position: inout Int
    ) throws(HTTPProtocolError) -> BodyDecoder.Step? {
        guard var decoder = body else { return nil }
        let step = try decoder.next(bytes, at: &position)
        body = decoder
        return step
    }

    /// Keeps the head after its turn: the response depends on its fields.
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

/// A request and its response, from the complete head to the last byte sent: the plain numbers.
struct Exchange {
    /// When the head was complete, in nanoseconds of the loop's clock; 0 while no exchange is in progress.
    var started: UInt64 = 0
    /// The client, from a trusted proxy or from the connection.
    var client: IPAddress?
    /// The generated id of the request; 0 if the client's own is used.
    var generatedID: UInt64 = 0
    /// Status of the response; 0 until it is known.
    var status = 0
    /// Nanoseconds that the client may still take to receive the response. Bytes that it receives add to it.
    var timeToSend: UInt64 = .max
    /// Bytes of the response's head.
    var headBytes = 0
    /// Bytes of the response that the kernel has accepted, including the head.
    var sentBytes = 0
    /// Whether the connection ends with this response.
    var closes = false
    /// Whether the client understands interim responses: HTTP/1.0 has none (RFC 9110 section 15.2).
    var allowsInterim = false
    /// Whether the client waits for `100 Continue`, which was not sent yet.
    var awaitsContinue = false

    /// Bytes of the response's body sent so far.
    var bodyBytes: Int { max(0, sentBytes - headBytes) }
}

/// A request's body on its way to its sink.
struct Reception {
    let sink: any HTTPBodySink
    /// The maximum number of bytes.
    let limit: Int
    /// When the whole body must have arrived, in nanoseconds of the loop's clock.
    let deadline: UInt64
    /// Bytes so far.
    var count = 0
}

/// A streamed body that is being sent. Kept outside ``Connection``, because few connections have one. Used by one loop thread;
/// the task that produces the body reaches it through the loop's mailbox.
final class BodyStream {
    /// How the client recognizes the end of the body.
    enum Framing: Equatable {
        /// By the number of bytes declared in the head.
        case counted(Int)
        /// By the last chunk.
        case chunked
        /// By the end of the connection, because HTTP/1.0 has no chunks.
        case untilClose

        /// - Parameter length: The length of the body, if known.
        init(length: Int?, minorVersion: UInt8) {
            self = length.map(Self.counted) ?? (minorVersion > 0 ? .chunked : .untilClose)
        }
    }

    private let framing: Framing
    /// The bytes left of a body with a declared length.
    private var left: Int?
    /// Resumed when the current piece is sent.
    private var continuation: CheckedContinuation<Bool, Never>?
    /// Whether the body is complete, except for segments that are still to be sent.
    private(set) var hasEnded = false

    init(_ framing: Framing) {
        self.framing = framing
        left = if case .counted(let length) = framing { length } else { nil }
    }

    /// Whether the client cannot distinguish an incomplete body from a complete one if the connection ends normally.
    var needsReset: Bool { framing == .untilClose }

    /// Whether the client has a whole body once the segments so far are sent, although the producer has not ended it.
    var isWhole: Bool { left == 0 }

    /// Starts the task that produces the body of a connection's response.
    static func start(
        _ produce: @escaping @Sendable (HTTPBodyWriter) async throws -> Void, for token: ConnectionToken, mailbox: LoopMailbox
    ) -> Task<Void, Never> {
        Task {
            do {
                try await produce(HTTPBodyWriter(mailbox: mailbox, token: token))
                mailbox.post(.streamEnded(token, isComplete: true))
            } catch {
                mailbox.post(.streamEnded(token, isComplete: false))
            }
        }
    }

    /// Appends a piece to `segments`. Returns false, without using `continuation`, if the previous piece is not sent yet or the
    /// piece exceeds the declared length.
    func append(
        _ bytes: [UInt8], _ continuation: CheckedContinuation<Bool, Never>, to segments: inout [Segment]
    ) -> Bool {
        guard self.continuation == nil, bytes.count <= left ?? .max else { return false }
        self.continuation = continuation
        if let left { self.left = left - bytes.count }
        let isChunked = framing == .chunked
        if isChunked { segments.append(Segment(Array("\(String(bytes.count, radix: 16))\r\n".utf8))) }
        segments.append(Segment(bytes))
        if isChunked { segments.append(Segment([13, 10])) }
        return true
    }

    /// Appends the end of a complete body to `segments`. Returns false if the body is shorter than declared.
    func end(_ segments: inout [Segment]) -> Bool {
        guard left ?? 0 == 0 else { return false }
        hasEnded = true
        if framing == .chunked { segments.append(Segment(Array("0\r\n\r\n".utf8))) }
        return true
    }

    /// Resumes the writer of the current piece, if any.
    ///
    /// - Parameter isSent: Whether the piece was sent; otherwise the connection has ended.
    func resume(isSent: Bool) {
        continuation?.resume(returning: isSent)
        continuation = nil
    }
}

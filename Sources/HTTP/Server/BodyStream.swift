/// A streamed body on its way to the client. Few connections have one, so it is not part of each. It belongs to one loop thread;
/// the task that produces the body reaches it through the loop's mailbox.
final class BodyStream {
    /// Whether pieces are sent as chunks; else the end of the connection is the end of the body.
    private let isChunked: Bool
    /// Resumed when the current piece is sent.
    private var continuation: CheckedContinuation<Bool, Never>?
    /// Whether the body is complete except for segments that are not sent yet.
    private(set) var hasEnded = false

    init(isChunked: Bool) {
        self.isChunked = isChunked
    }

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

    /// Appends a piece to `segments`. Returns false if the previous one is not sent yet; `continuation` is then not used.
    func append(
        _ bytes: [UInt8], _ continuation: CheckedContinuation<Bool, Never>, to segments: inout [Segment]
    ) -> Bool {
        guard self.continuation == nil else { return false }
        self.continuation = continuation
        if isChunked { segments.append(Segment(Array("\(String(bytes.count, radix: 16))\r\n".utf8))) }
        segments.append(Segment(bytes))
        if isChunked { segments.append(Segment([13, 10])) }
        return true
    }

    /// Appends the end of a complete body to `segments`.
    func end(_ segments: inout [Segment]) {
        hasEnded = true
        if isChunked { segments.append(Segment(Array("0\r\n\r\n".utf8))) }
    }

    /// Resumes the writer of the current piece, if any.
    ///
    /// - Parameter isSent: Whether the piece was sent; else the connection has ended.
    func resume(isSent: Bool) {
        continuation?.resume(returning: isSent)
        continuation = nil
    }
}

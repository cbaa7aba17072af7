internal import Glibc
internal import Synchronization
internal import SystemIO

/// The body of a source with a `Content-Encoding`. Dedicated threads decode it while it arrives.
///
/// The transfer loop, which serves every fetch, only copies the bytes. The threads decode the bodies in short turns, so a slow
/// body delays the others only by its turns. Thread-safe.
final class CodedBody: Sendable {
    typealias Outcome = Result<FetchedBody, FetchError>

    struct Limits: Sendable {
        /// The largest source, in bytes.
        let bytes: Int
        /// See ``ArrivingSource/acceptsImages``.
        let acceptsImages: Bool
        /// The time by which the fetch must be complete.
        let deadline: ContinuousClock.Instant
        let timeout: Duration
        /// The CPU time that decoding may take, in nanoseconds.
        let processorTime: Int

        /// - Parameter processorTime: Nil for several times the CPU time that an old machine needs.
        init(
            bytes: Int, acceptsImages: Bool = false, deadline: ContinuousClock.Instant, timeout: Duration,
            processorTime: Int? = nil
        ) {
            self.bytes = bytes
            self.acceptsImages = acceptsImages
            self.deadline = deadline
            self.timeout = timeout
            self.processorTime = processorTime ?? 1_000_000_000 + bytes * 20
        }
    }

    private struct State {
        /// The input that waits to be decoded.
        var pieces: [[UInt8]] = []
        var waitingBytes = 0
        /// The number of bytes decoded so far.
        var decodedBytes = 0
        /// Whether all bytes have arrived.
        var isWhole = false
        /// Whether a turn is queued or running. Turns do not overlap.
        var hasTurn = false
        var outcome: Outcome?
        var continuation: CheckedContinuation<Outcome, Never>?
    }

    /// The state that only turns use.
    private struct Work: ~Copyable {
        let decoder: ContentDecoder
        var sink: BodySink?
        var processorTime = 0
    }

    private let state = Mutex(State())
    private let work: Mutex<Work>
    private let limits: Limits
    private let threads: WorkThreads
    private let receive: @Sendable (BodySink.Arrived) -> Void

    /// The size up to which pieces are joined, so that an origin that sends single bytes costs no more than others.
    private static let pieceSize = 64 << 10
    private static let turn = Duration.milliseconds(2)

    /// - Parameters:
    ///   - codings: The codings in the order in which they were applied, in lower case.
    ///   - receive: Called with the progress of the decoded source.
    /// - Returns: Nil if the body is used without decoding.
    init?(
        _ codings: [String], _ limits: Limits, on threads: WorkThreads,
        _ receive: @escaping @Sendable (BodySink.Arrived) -> Void
    ) {
        guard let decoder = ContentDecoder(codings, limit: limits.bytes) else { return nil }
        work = Mutex(Work(decoder: decoder, sink: BodySink(limit: limits.bytes, acceptsImages: limits.acceptsImages)))
        self.limits = limits
        self.threads = threads
        self.receive = receive
    }

    /// Adds the next part of the body.
    ///
    /// - Throws: The reason why the body cannot be used.
    func append(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        let (error, needsTurn) = state.withLock { state -> (FetchError?, Bool) in
            if case .failure(let error) = state.outcome { return (error, false) }
            state.waitingBytes += bytes.count
            // Encoding adds at most its framing to a body, so a source within the limit never exceeds this sum.
            guard state.waitingBytes + state.decodedBytes <= limits.bytes + limits.bytes / 16 + Self.pieceSize else {
                let error = FetchError.tooLarge(limit: limits.bytes, declared: nil)
                state.outcome = .failure(error)
                return (error, false)
            }
            if let last = state.pieces.indices.last, state.pieces[last].count + bytes.count <= Self.pieceSize {
                state.pieces[last].append(contentsOf: bytes)
            } else {
                state.pieces.append(Array(bytes))
            }
            defer { state.hasTurn = true }
            return (nil, !state.hasTurn)
        }
        if let error { throw error }
        if needsTurn { queueTurn() }
    }

    /// Waits until the body is decoded. Call it once, after the last part. Cancelling the task ends decoding at once.
    func finish() async throws(FetchError) -> FetchedBody {
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (outcome, needsTurn) = state.withLock { state -> (Outcome?, Bool) in
                    state.isWhole = true
                    if let outcome = state.outcome { return (outcome, false) }
                    state.continuation = continuation
                    defer { state.hasTurn = true }
                    return (nil, !state.hasTurn)
                }
                if let outcome { continuation.resume(returning: outcome) }
                if needsTurn { queueTurn() }
            }
        } onCancel: {
            end(.failure(.cancelled))
        }
        return try outcome.get()
    }

    /// Ends the decoding of an unneeded body.
    func cancel() { end(.failure(.cancelled)) }

    private func end(_ outcome: Outcome) {
        let continuation = state.withLock { state in
            if state.outcome == nil { state.outcome = outcome }
            state.pieces = []
            return state.continuation.take()
        }
        continuation?.resume(returning: outcome)
    }

    // MARK: Turns

    private func queueTurn() {
        if !threads.submit({ self.takeTurn() }) { end(.failure(.closed)) }
    }

    private func takeTurn() {
        guard state.withLock({ $0.outcome == nil }) else { return }
        let outcome = work.withLock { work in
            let start = Self.processorTime
            let outcome = Result { () throws(FetchError) in try decode(&work) }
            work.processorTime += Self.processorTime - start
            return outcome
        }
        switch outcome {
        case .failure(let error): end(.failure(error))
        case .success(.again): queueTurn()
        case .success(.waiting): break
        case .success(.complete(let body)): end(.success(body))
        }
    }

    private enum Progress {
        /// The time slice of the turn is used up.
        case again
        /// All input is decoded.
        case waiting
        case complete(FetchedBody)
    }

    private func decode(_ work: inout Work) throws(FetchError) -> Progress {
        let start = ContinuousClock.now
        guard start < limits.deadline else { throw .timeout(.total, limit: limits.timeout) }
        guard work.processorTime < limits.processorTime else {
            throw .failed(.protocolViolation(cause: "its compressed data take too long to decode"))
        }
        while ContinuousClock.now - start < Self.turn {
            var count = 0
            let hasMore = try work.decoder.step { bytes throws(FetchError) in
                count = bytes.count
                if let arrived = try work.sink?.append(bytes) { receive(arrived) }
            }
            if hasMore {
                if count > 0 { state.withLock { $0.decodedBytes += count } }
                continue
            }
            let (piece, isWhole) = state.withLock { state in
                let piece = state.pieces.isEmpty ? nil : state.pieces.removeFirst()
                state.waitingBytes -= piece?.count ?? 0
                if piece == nil { state.hasTurn = false }
                return (piece, state.isWhole)
            }
            if let piece {
                work.decoder.add(piece)
            } else if isWhole {
                return .complete(try finish(&work))
            } else {
                return .waiting
            }
        }
        return .again
    }

    private func finish(_ work: inout Work) throws(FetchError) -> FetchedBody {
        guard work.decoder.isComplete else { throw .failed(.cutShort(cause: "its compressed data end early")) }
        guard let sink = work.sink.take() else { throw .closed }
        return try sink.finish()
    }

    /// The CPU time that the calling thread has used, in nanoseconds.
    private static var processorTime: Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

internal import Digests
internal import SystemIO

/// A complete body that begins as an animation.
struct FetchedBody {
    let bytes: SharedDescriptor
    let count: Int
    let sha256: [UInt8]
}

/// The receiver of a source's body: it recognizes, counts, hashes and stores the bytes.
///
/// The memory file is created after the first bytes were recognized, so that responses of other kinds need none.
struct BodySink: ~Copyable {
    private let limit: Int
    private var start: [UInt8] = []
    private var hash = SHA256()
    private var file: MemoryFile?
    private var reader: SharedDescriptor?
    /// Bytes in the file.
    private var count = 0

    /// What has arrived of a body that is recognized as a source.
    struct Arrived {
        let file: SharedDescriptor
        /// Bytes in the file.
        let count: Int
        /// Whether nothing had arrived before.
        let isFirst: Bool
    }

    /// - Parameter limit: The largest body, in bytes.
    init(limit: Int) {
        self.limit = limit
    }

    /// Appends a part of the body. Must not be called after an error.
    ///
    /// - Returns: What has arrived; nil if more bytes are needed to recognize it.
    mutating func append(_ bytes: UnsafeRawBufferPointer) throws(FetchError) -> Arrived? {
        if let reader {
            try store(bytes)
            return Arrived(file: reader, count: count, isFirst: false)
        }
        let known = start.count
        start.append(contentsOf: bytes.prefix(ContentSniffer.sufficient - known))
        switch ContentSniffer.judge(start, isWhole: false) {
        case .undecided:
            // All bytes so far are in `start`, since more than that would have been decided.
            return nil
        case .notAGIF(let kind):
            throw .notAGIF(looksLike: kind)
        case .source:
            let opened: SharedDescriptor
            do throws(SystemError) {
                let file = try MemoryFile(name: "gifreel-source")
                opened = file.reader
                self.file = consume file
            } catch {
                throw .exhausted(cause: error.description)
            }
            reader = opened
            try storeStart(upTo: known)
            try store(bytes)
            return Arrived(file: opened, count: count, isFirst: true)
        }
    }

    /// Seals and returns the complete body.
    consuming func finish() throws(FetchError) -> FetchedBody {
        guard let file = consume file else {
            guard case .notAGIF(let kind) = ContentSniffer.judge(start, isWhole: true) else {
                throw .notAGIF(looksLike: .unknown)
            }
            throw .notAGIF(looksLike: kind)
        }
        do throws(SystemError) {
            return FetchedBody(bytes: try file.seal(), count: count, sha256: hash.finalize())
        } catch {
            throw .exhausted(cause: error.description)
        }
    }

    private mutating func storeStart(upTo count: Int) throws(FetchError) {
        var failure: FetchError?
        start.withUnsafeBytes { bytes in
            do throws(FetchError) { try store(UnsafeRawBufferPointer(rebasing: bytes[..<count])) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    private mutating func store(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        guard count + bytes.count <= limit else { throw .tooLarge(limit: limit, declared: nil) }
        do throws(SystemError) {
            try file?.append(bytes)
        } catch {
            throw .exhausted(cause: error.description)
        }
        hash.update(bytes)
        count += bytes.count
    }
}

/// A detector of responses that arrive too slowly: fewer than `rate` bytes per second over a whole window of time.
///
/// A window moves by quarters of its length, so a stall is detected after one window and a quarter at the latest. The first one
/// begins with the response: before that, only the time limit of the whole fetch applies.
struct StallMeter {
    private let bytesPerWindow: Int
    private let quarter: Duration
    /// The end of the present quarter.
    private var end: ContinuousClock.Instant?
    /// Bytes in the present quarter.
    private var received = 0
    /// Bytes in the quarters before it, the latest last; at most three.
    private var earlier: [Int] = []

    /// - Parameters:
    ///   - rate: In bytes per second; 0 turns the meter off.
    ///   - window: How long a response may be slower.
    init(rate: Int, window: Duration) {
        bytesPerWindow = Int((Double(rate) * (window / .seconds(1))).rounded(.up))
        quarter = window / 4
    }

    /// Counts bytes of the response.
    mutating func receive(_ count: Int) {
        received += count
    }

    /// Whether a quarter has ended since the last call, and with it a window with too few bytes.
    mutating func isStalled(at now: ContinuousClock.Instant, hasBegun: Bool) -> Bool {
        guard hasBegun, bytesPerWindow > 0 else { return false }
        guard let end else {
            self.end = now + quarter
            received = 0
            return false
        }
        guard now >= end else { return false }
        let isTooSlow = earlier.count == 3 && earlier.reduce(received, +) < bytesPerWindow
        earlier = earlier.suffix(2) + [received]
        self.end = now + quarter
        received = 0
        return isTooSlow
    }
}

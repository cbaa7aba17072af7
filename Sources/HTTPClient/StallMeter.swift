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

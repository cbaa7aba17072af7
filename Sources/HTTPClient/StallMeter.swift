/// Detects responses that arrive too slowly: below `rate` bytes per second over a whole sliding window.
///
/// The window slides in steps of a quarter of its length, so a stall is detected within one and a quarter windows. The first
/// window begins with the response: before that, only the timeout of the whole fetch applies.
struct StallMeter {
    private let bytesPerWindow: Int
    private let quarter: Duration
    /// The end of the current quarter.
    private var end: ContinuousClock.Instant?
    /// Bytes received in the current quarter.
    private var received = 0
    /// Bytes received in up to three preceding quarters, the latest last.
    private var earlier: [Int] = []

    /// - Parameter rate: The minimum rate in bytes per second; 0 disables the meter.
    init(rate: Int, window: Duration) {
        bytesPerWindow = Int((Double(rate) * (window / .seconds(1))).rounded(.up))
        quarter = window / 4
    }

    /// Counts received bytes of the response.
    mutating func receive(_ count: Int) {
        received += count
    }

    /// Whether a quarter has ended since the last call and completed a window with too few bytes.
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

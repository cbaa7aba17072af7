/// Notices an answer that comes too slowly: fewer than `rate` bytes a second over a whole window of time.
///
/// Windows follow one another, so that a stall is noticed after one to two of them. It is counted from the first byte of
/// the answer on: an origin that thinks before it speaks is bounded by the whole fetch's time alone.
struct StallMeter {
    private let bytesPerWindow: Int
    private let window: Duration
    private var end: ContinuousClock.Instant?
    private var received = 0

    /// - Parameters:
    ///   - rate: In bytes a second; 0 switches the meter off.
    ///   - window: How long an answer may be slower.
    init(rate: Int, window: Duration) {
        bytesPerWindow = Int((Double(rate) * (window / .seconds(1))).rounded(.up))
        self.window = window
    }

    /// Counts bytes of the answer.
    mutating func receive(_ count: Int) {
        received += count
    }

    /// Whether the window that ends now, if one does, saw too few bytes.
    mutating func isStalled(at now: ContinuousClock.Instant, hasBegun: Bool) -> Bool {
        guard hasBegun, bytesPerWindow > 0 else { return false }
        guard let end else {
            self.end = now + window
            received = 0
            return false
        }
        guard now >= end else { return false }
        let isTooSlow = received < bytesPerWindow
        self.end = now + window
        received = 0
        return isTooSlow
    }
}

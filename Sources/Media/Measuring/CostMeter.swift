internal import Glibc

/// Adds up the calling thread's processor time, stage by stage.
struct CostMeter: StageMeter {
    private(set) var costs = StageCosts()
    private var last = Self.now()

    mutating func worked(at stage: ConversionStage) {
        let now = Self.now()
        let spent = now - last
        last = now
        switch stage {
        case .scan: costs.scan += spent
        case .decode: costs.decode += spent
        case .compose: costs.compose += spent
        case .convert: costs.convert += spent
        case .encode: costs.encode += spent
        case .mux: costs.mux += spent
        }
    }

    mutating func decoded(pixels: Int) { costs.codedPixels += pixels }

    mutating func sampled(pixels: Int) { costs.videoPixels += pixels }

    /// The costs of a conversion that has made so many bytes.
    func finished(bytes: Int) -> StageCosts {
        var costs = costs
        costs.bytes = bytes
        return costs
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}

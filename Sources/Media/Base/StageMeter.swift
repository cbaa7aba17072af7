internal import Glibc

/// The stages of a conversion that are measured separately.
enum ConversionStage {
    case scan
    case decode
    case compose
    case convert
    case encode
    case mux
}

/// Receives a call after each step of a conversion, so that measurements cover the conversion itself.
protocol StageMeter {
    /// Attributes the time since the last call to a stage.
    mutating func worked(at stage: ConversionStage)
    /// Counts a decoded frame of this many pixels.
    mutating func decoded(pixels: Int)
    /// Counts a sample of this many pixels for the encoder.
    mutating func sampled(pixels: Int)
}

/// A meter that measures nothing and costs nothing.
struct NoMeter: StageMeter {
    mutating func worked(at stage: ConversionStage) {}
    mutating func decoded(pixels: Int) {}
    mutating func sampled(pixels: Int) {}
}

/// Sums up the calling thread's processor time per stage.
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

    /// The costs of a conversion whose output has this many bytes.
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

/// The processor time of each stage of one conversion, in nanoseconds, and the amount of work.
package struct StageCosts: Sendable, Equatable {
    /// Reading all records without decoding pixels.
    package var scan = 0
    /// Decoding the container and its pixels.
    package var decode = 0
    /// Drawing frames on the canvas, including disposal.
    package var compose = 0
    /// Converting the changed part of the canvas to 4:2:0 planes.
    package var convert = 0
    /// Encoding finished frames with libx264.
    package var encode = 0
    /// Writing packets into the container, and its index.
    package var mux = 0

    /// Pixels of the frames by their own sizes.
    package var codedPixels = 0
    /// Pixels of the video's samples.
    package var videoPixels = 0
    /// Bytes of the MP4.
    package var bytes = 0

    package init() {}
}

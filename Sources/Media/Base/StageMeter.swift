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
    /// The conversion worked at this stage since the last call.
    mutating func worked(at stage: ConversionStage)
    /// A frame of this many pixels was decoded.
    mutating func decoded(pixels: Int)
    /// A sample of this many pixels goes to the encoder.
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
    /// Reading all records, without a pixel.
    package var scan = 0
    /// Container and LZW codes into palette indices.
    package var decode = 0
    /// Indices onto the canvas, disposal included.
    package var compose = 0
    /// The changed part of the canvas into 4:2:0 planes.
    package var convert = 0
    /// libx264, fed with frames that are ready.
    package var encode = 0
    /// Packets into the container, and its index.
    package var mux = 0

    /// Pixels of the GIF's images by their own sizes.
    package var codedPixels = 0
    /// Pixels of the video's samples.
    package var videoPixels = 0
    /// Bytes of the MP4.
    package var bytes = 0

    package init() {}

    /// All that is not the encoder's.
    package var others: Int { scan + decode + compose + convert + mux }
}

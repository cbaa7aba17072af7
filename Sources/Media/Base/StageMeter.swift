internal import Glibc

/// The stages of a conversion that are measured apart.
enum ConversionStage {
    case scan
    case decode
    case compose
    case convert
    case encode
    case mux
}

/// Is told by a conversion what it has just done, so that what is measured is the conversion itself.
protocol StageMeter {
    /// The stage has been worked at since the last call.
    mutating func worked(at stage: ConversionStage)
    /// An image of the GIF has been decoded that has so many pixels.
    mutating func decoded(pixels: Int)
    /// A sample of so many pixels goes to the encoder.
    mutating func sampled(pixels: Int)
}

/// Measures nothing, and costs nothing.
struct NoMeter: StageMeter {
    mutating func worked(at stage: ConversionStage) {}
    mutating func decoded(pixels: Int) {}
    mutating func sampled(pixels: Int) {}
}

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

/// What each stage of one conversion took of the processor, in nanoseconds, and how much work it was.
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

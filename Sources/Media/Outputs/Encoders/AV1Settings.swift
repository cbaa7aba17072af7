internal import CMedia

/// The settings of libaom for a video in MP4.
struct AV1Settings: MP4EncoderSettings, Equatable {
    static let codec = VideoCodec.av1
    static let needsEvenSides = false
    /// A temporal unit ends with the frame that is shown.
    let reordersFrames = false
    static let temporalMeanOffset = 0.0

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "aom-31"

    /// 0…63: lower is better and larger.
    var quantizer: Int
    let tools: AV1Tools
    var plane: EncodedPlane { .color(tools.chroma) }

    init(_ tools: AV1Tools, quantizer: Int) {
        self.tools = tools
        self.quantizer = quantizer
    }

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational) {
        // The level follows from the rate. libaom rejects a time base of more than a second, and treats rates above 180 frames
        // per second as 30.
        let isSlow = highestRate.num < highestRate.den
        let isFast = Int(highestRate.num) > Self.highestRate * Int(highestRate.den)
        context.pointee.time_base =
            isSlow
            ? AVRational(num: 1, den: 1)
            : isFast ? AVRational(num: 1, den: Int32(Self.highestRate)) : AVRational(num: highestRate.den, den: highestRate.num)
        tools.configure(context, quantizer: quantizer)
    }

    func coarser(excess: Double) -> AV1Settings? {
        guard excess > 1, quantizer < Self.coarsest else { return nil }
        // Eight steps roughly halve the bytes.
        let steps = 8 * PortableMath.log2(excess)
        guard steps <= Self.mostSteps else { return nil }
        var settings = self
        settings.quantizer = min(Self.coarsest, quantizer + Int(min(Self.mostSteps, steps + 1).rounded()))
        return settings
    }

    /// In frames per second.
    private static let highestRate = 180
    private static let coarsest = 63
    private static let mostSteps = 5.0
}

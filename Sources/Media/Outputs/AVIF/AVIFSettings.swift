internal import CMedia

/// The settings of libaom for one plane of an image sequence.
struct AVIFSettings: EncoderSettings {
    static let encoder = "libaom-av1"
    static let missing = TranscodeError.encoderMissing(.avif)
    let reordersFrames = false

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "avif-31"

    let plane: EncodedPlane
    private let tools: AV1Tools
    private let quantizer: Int

    /// The settings for the colours.
    init(_ tools: AV1Tools, quantizer: Int) {
        plane = .color(tools.chroma)
        self.tools = tools
        self.quantizer = quantizer
    }

    /// The settings for the alpha plane of pictures whose colours are encoded with `tools`.
    init(alphaBeside tools: AV1Tools, quality: Int) {
        plane = .monochromeAlpha
        self.tools = tools.forAlpha
        quantizer = self.tools.quantizer(quality: quality)
    }

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational) {
        // The level follows from the rate. Below 30 frames per second, pictures are counted, not timed.
        let isFast = Int(highestRate.num) > Self.usualRate * Int(highestRate.den)
        let rate = isFast ? highestRate : AVRational(num: Int32(Self.usualRate), den: 1)
        (context.pointee.time_base, context.pointee.framerate) = (AVRational(num: rate.den, den: rate.num), rate)
        tools.configure(context, quantizer: quantizer)
    }

    /// In frames per second.
    private static let usualRate = 30
}

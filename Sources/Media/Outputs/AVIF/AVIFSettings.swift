internal import CMedia

/// The settings of libaom for one plane of an image sequence.
struct AVIFSettings: EncoderSettings {
    static let encoder = "libaom-av1"
    static let missing = TranscodeError.encoderMissing(.avif)
    static let reordersFrames = false

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "avif-26"

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
        // Pictures are counted, not timed.
        context.pointee.time_base = AVRational(num: 1, den: 30)
        context.pointee.framerate = AVRational(num: 30, den: 1)
        tools.configure(context, quantizer: quantizer)
    }
}

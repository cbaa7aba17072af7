internal import CAV

/// The settings of libaom for one plane of an image sequence.
struct AVIFSettings: EncoderSettings {
    static let encoder = "libaom-av1"
    static let missing = TranscodeError.encoderMissing(.avif)
    static let reordersFrames = false

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "avif-10"

    let plane: EncodedPlane
    private let tools: AV1Tools
    private let quality: Int

    /// - Parameter tools: Those for the colours.
    init(isAlpha: Bool, quality: Int, tools: AV1Tools) {
        plane = isAlpha ? .monochromeAlpha : .color(.sRGB)
        self.tools = isAlpha ? tools.forAlpha : tools
        self.quality = quality
    }

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, highestRate: AVRational) {
        // Pictures are counted, not timed.
        context.pointee.time_base = AVRational(num: 1, den: 30)
        context.pointee.framerate = AVRational(num: 30, den: 1)
        tools.configure(context, quantizer: tools.quantizer(quality: quality))
    }
}

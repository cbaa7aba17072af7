internal import CAV
internal import Glibc

/// The settings of libaom for a video in MP4.
struct AV1Settings: MP4EncoderSettings, Equatable {
    static let codec = VideoCodec.av1
    /// A temporal unit ends with the frame that is shown.
    static let reordersFrames = false
    static let temporalMeanOffset = 0.0

    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "aom-11"

    /// 0…63: lower is better and larger.
    var quantizer: Int
    let tools: AV1Tools
    var timescale = FrameClock.timescale

    init(_ transcoder: Transcoder, _ tools: AV1Tools) {
        self.tools = tools
        quantizer = tools.quantizer(quality: transcoder.options.quality)
    }

    func configure(_ context: UnsafeMutablePointer<AVCodecContext>, shortestFrame: Int) {
        // Frames are counted, not timed: the level follows from the shortest one, and the bytes depend on pictures alone. libaom
        // takes no time base of more than a second, and takes a higher rate than 180 frames per second for 30.
        let shortestUnit = (timescale + Self.highestRate - 1) / Self.highestRate
        let unit = min(max(shortestUnit, shortestFrame), timescale)
        context.pointee.time_base = AVRational(num: Int32(unit), den: Int32(timescale))
        tools.configure(context, quantizer: quantizer)
    }

    func coarser(excess: Double) -> AV1Settings? {
        guard excess > 1, quantizer < Self.coarsest else { return nil }
        // Eight steps halve the bytes, roughly.
        let steps = 8 * log2(excess)
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

/// The samples of a video: decoder ▸ canvas ▸ clock ▸ timeline ▸ converter.
///
/// A frame becomes no sample if it looks like the previous one, lies outside the requested part or exceeds the frame rate. Not
/// thread-safe.
final class SampleSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The size of the video in pixels; both sides are even.
    let width: Int
    let height: Int
    /// Frames read so far.
    private(set) var frames = 0
    /// Samples given so far.
    private(set) var samples = 0

    private var decoder: Decoder
    private var canvas: Canvas
    private let scaler: VideoScaler?
    private var timeline: Timeline
    private var clock = FrameClock()
    /// The area in which the planes differ from the canvas: all of it at first, later the changes of dropped frames.
    private var area: Rectangle

    /// - Parameter bytes: The whole file. It must stay valid for the lifetime of the source.
    init(
        _ bytes: UnsafeRawBufferPointer, _ summary: AnimationSummary, limits: MediaLimits, options: TranscodeOptions
    ) throws(TranscodeError) {
        let geometry = PictureGeometry(width: summary.width, height: summary.height, options: options.size)
        decoder = try Decoder(bytes, limits: limits)
        canvas = try Canvas(width: summary.width, height: summary.height, format: .yuv(background: options.background))
        scaler = geometry.isIdentity ? nil : try VideoScaler(geometry)
        timeline = Timeline(options.time)
        width = geometry.evenWidth
        height = geometry.evenHeight
        area = Rectangle(x: 0, y: 0, width: summary.width, height: summary.height)
    }

    /// The duration of the frames read so far, in hundredths of a second.
    var elapsed: Int { clock.now }

    /// Reads frames until one becomes a sample, and writes its picture; nil at the end.
    ///
    /// - Parameter planes: Called when there is a picture to write; they hold the sample before.
    func next(
        _ meter: inout some StageMeter, into planes: () throws(TranscodeError) -> PixelConverter.Planes
    ) throws(TranscodeError) -> Sample? {
        while !timeline.isOver(at: clock.now), try decoder.next(), let pixels = try decoder.readPixels() {
            meter.decoded(pixels: decoder.frame.rectangle.width * decoder.frame.rectangle.height)
            meter.worked(at: .decode)
            area = area.union(try canvas.draw(decoder, pixels))
            meter.worked(at: .compose)
            let shown = clock.advance(by: decoder.frame.delay)
            frames += 1
            guard let time = timeline.place(time: shown.start, duration: shown.duration), timeline.admits(time) else {
                continue
            }
            let changed = area
            area = .empty
            let hasChanged = try convert(changed, into: try planes())
            meter.worked(at: .convert)
            // A frame that looks like the previous one extends its sample, up to the longest duration of a sample.
            guard hasChanged || samples == 0 || timeline.isOverdue(time) else { continue }
            samples += 1
            timeline.note(time)
            let whole = Rectangle(x: 0, y: 0, width: width, height: height)
            return Sample(time: time, area: scaler == nil ? changed : whole)
        }
        return nil
    }

    private func convert(_ area: Rectangle, into planes: PixelConverter.Planes) throws(TranscodeError) -> Bool {
        if let scaler { return try scaler.convert(canvas, area, into: planes) }
        return PixelConverter.convert(canvas, area, into: planes)
    }
}

/// A picture of a video.
struct Sample {
    /// When it is shown, in units of the timeline.
    var time: Int
    /// The part of the picture that may differ from the sample before.
    var area: Rectangle
}

/// The samples of a video: ``PictureSource`` ▸ converter.
///
/// A picture becomes no sample if its planes equal those of the previous one, except near the end. Not thread-safe.
final class SampleSource<Decoder: AnimationDecoder & ~Copyable> {
    /// The size of the planes in pixels; both sides are even.
    let width: Int
    let height: Int
    /// The resolution of the chroma planes.
    let chroma: ChromaFormat
    /// Whether there is an alpha plane. Otherwise, transparent pixels show the background.
    let hasAlpha: Bool
    /// Samples returned so far.
    private(set) var samples = 0
    /// The time of the last returned sample.
    private var newest = 0

    let pictures: PictureSource<Decoder>
    private let converter: Converter
    private let ending: Int

    private enum Converter {
        case planes
        case identity
        case scaler(VideoScaler)
        case zoom(VideoZoom)
        case alpha(AlphaConverter)
    }

    /// - Parameter ending: The time from which all frames after three samples become samples.
    init(
        _ source: ScannedSource<Decoder>, hasAlpha: Bool = false, _ pace: Timeline.Pace = .video,
        chroma: ChromaFormat = .half, ending: Int = .max
    ) throws(TranscodeError) {
        self.chroma = chroma
        self.ending = ending
        let background = source.options.background
        pictures = try PictureSource(
            source, format: hasAlpha ? .rgba : .yuv(background: background), pace, takesPlanes: !hasAlpha && chroma == .half)
        self.hasAlpha = hasAlpha
        let geometry = pictures.geometry
        if pictures.passer != nil {
            converter = .planes
        } else if hasAlpha {
            converter = .alpha(try AlphaConverter(geometry))
        } else if geometry.zoom > 1 || (geometry.hasMargin && !geometry.isScaled) {
            converter = .zoom(try VideoZoom(geometry, background: background))
        } else {
            converter = geometry.isIdentity ? .identity : .scaler(try VideoScaler(geometry, background: background))
        }
        width = geometry.evenWidth
        height = geometry.evenHeight
    }

    var siting: FramePlanes.Siting { pictures.passer?.siting ?? .center }

    /// Reads frames until one becomes a sample, and writes its picture. Returns nil at the end.
    ///
    /// - Parameter planes: Called when there is a picture to write. Returns the planes, which hold the previous sample.
    /// - Throws: ``TranscodeError``; `incomplete` or `startPastEnd` at the end of a source without a sample.
    func next(into planes: () throws(TranscodeError) -> FramePlanes) throws(TranscodeError) -> TimedPicture? {
        // A picture that looks like the previous one extends its sample, up to the longest duration of a sample.
        let longest = newest + Timeline.longestSample
        let repetition = samples > 2 ? min(ending, longest) : longest
        while var picture = try pictures.next(repeatingAt: repetition) {
            let hasChanged = try convert(picture.area, into: try planes())
            guard hasChanged || samples == 0 || picture.time >= repetition else { continue }
            samples += 1
            newest = picture.time
            if case .identity = converter { return picture }
            picture.area = Rectangle(x: 0, y: 0, width: width, height: height)
            return picture
        }
        return nil
    }

    /// Returns the next sample as ``next(into:)`` does. If the source has a thread, the thread has read it.
    func nextSample(
        on thread: SampleThread<Decoder>?, into planes: () throws(TranscodeError) -> FramePlanes
    ) throws(TranscodeError) -> TimedPicture? {
        if let thread { return try thread.next(into: try planes()) }
        return try next(into: planes)
    }

    private func convert(_ area: Rectangle, into planes: FramePlanes) throws(TranscodeError) -> Bool {
        if case .planes = converter { return try pictures.passPlanes(into: planes) }
        return try pictures.withPicture { canvas throws(TranscodeError) in
            switch converter {
            case .planes: false
            case .identity: PixelConverter.convert(canvas, area, into: planes)
            case .zoom(let zoom): zoom.convert(canvas, area, into: planes)
            case .scaler(let scaler): try scaler.convert(canvas, area, into: planes)
            case .alpha(let converter): try converter.convert(canvas, area, into: planes)
            }
        }
    }
}

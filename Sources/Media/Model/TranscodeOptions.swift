/// The options of a video or a poster (docs/api.md). A format ignores options that have no effect on it.
package struct TranscodeOptions: Sendable, Hashable {
    /// 1…100; nil for the default, which is lossless for some formats and ``defaultQuality`` for the others.
    package var chosenQuality: Int?
    /// The colour behind transparent pixels.
    package var background = RGB.white
    package var size = SizeOptions()
    package var time = TimeOptions()
    package var frame = PosterFrame.number(0)
    /// The codec of an MP4. The other formats have a fixed codec.
    package var codec = VideoCodec.h264
    /// The platform rules that a WebM must follow; nil for none.
    package var preset: Preset?
    /// Whether palette dither is removed; see ``Undither``.
    package var undither = Undithering.automatic
    /// The chroma subsampling; see ``ChromaProbe``.
    package var chroma = Chroma.automatic
    /// Whether H.264 may have B-frames, which are stored in another order than they are shown.
    package var bframes = BFrames.automatic
    /// 1…8: every pixel becomes a square of this side.
    package var zoom = 1
    /// The kind of content that the encoder is tuned for.
    package var tune = Tune.automatic
    /// The maximum file size in bytes; nil for no limit. See ``ByteBudget``.
    package var maxBytes: Int?
    /// The facts that require scanning all pictures; nil for none.
    package var facts: Facts?

    /// Rules that a file must follow. The raw value crosses the process boundary.
    package enum Preset: UInt8, Sendable, CaseIterable {
        /// A video sticker of a messenger; see ``StickerRules``.
        case sticker = 1

        /// The longer side of the picture in pixels, regardless of the canvas.
        var longerSide: Int { 512 }
    }

    /// Content that encoders treat differently. The raw value crosses the process boundary.
    package enum Tune: UInt8, Sendable, CaseIterable {
        /// The content decides; see ``ContentProbe``.
        case automatic = 1
        /// Photographs and films, dithered or not.
        case film
        /// Drawings, interfaces, terminals and diagrams.
        case screen
        /// Pictures whose individual pixels are meant to be seen.
        case pixel
    }

    /// Which dither is removed. The raw value crosses the process boundary.
    package enum Undithering: UInt8, Sendable, CaseIterable {
        /// The dither of a film, if ``DitherProbe`` is certain of it; see ``ContentProbe``.
        case automatic = 1
        case always
        case never
    }

    /// The chroma subsampling in formats that allow a choice. The raw value crosses the process boundary.
    package enum Chroma: UInt8, Sendable, CaseIterable {
        /// Full chroma resolution (4:4:4) where the difference is visible.
        case automatic = 1
        /// Half the resolution in both directions (4:2:0), which every decoder supports.
        case subsampled
    }

    /// The B-frames of H.264. The raw value crosses the process boundary.
    package enum BFrames: UInt8, Sendable, CaseIterable {
        case automatic = 1
        /// Each picture is decoded when it is shown.
        case never
    }

    /// Facts that are returned only on request. The raw value crosses the process boundary.
    package enum Facts: UInt8, Sendable, CaseIterable {
        /// The ``Fingerprint`` of some pictures.
        case fingerprints = 1
        /// The ``Flashes``.
        case flashes
    }

    /// The options of a request that states none.
    package static let standard = TranscodeOptions()

    /// Whether dither is removed from pictures. For ``Undithering/automatic``, ``ContentProbe`` decides first.
    var undithers: Bool { undither == .always }

    package static let defaultQuality = 60

    /// 1…100, for formats that are not lossless; see ``H264Settings/rateFactor(quality:_:)``.
    package var quality: Int {
        get { chosenQuality ?? Self.defaultQuality }
        set { chosenQuality = newValue }
    }
}

/// The frame that a poster shows.
package enum PosterFrame: Sendable, Hashable {
    /// The frame with a 0-based index. An index past the end selects the last frame.
    case number(Int)
    /// The frame that represents the animation; see ``RepresentativeFrame``.
    case auto

    /// The index; nil if the content decides.
    package var number: Int? {
        if case .number(let number) = self { number } else { nil }
    }
}

/// The requested size of a picture, which never exceeds the canvas (docs/api.md).
package struct SizeOptions: Sendable, Hashable {
    /// In pixels; nil to derive it from the height and the aspect ratio, or from the canvas.
    package var width: Int?
    /// In pixels; nil to derive it from the width and the aspect ratio, or from the canvas.
    package var height: Int?
    package var fit = Fit.contain
    /// How a picture is fitted into a box of another aspect ratio. The raw value crosses the process boundary.
    package enum Fit: UInt8, Sendable, CaseIterable {
        /// The whole picture, inside the box.
        case contain
        /// The whole box; the picture is cropped, see ``gravity``.
        case cover
        /// The whole box; the picture is distorted.
        case fill
        /// The whole picture in the middle of the box, with a margin around it.
        case pad
    }

    /// The part of the picture that ``Fit/cover`` keeps.
    package var gravity = Gravity.center
}

/// The point of a picture on which a crop is centred, as far as the edges allow.
package struct Gravity: Sendable, Hashable {
    /// From the left edge, in thousandths of the width.
    package var x: Int
    /// From the top edge, in thousandths of the height.
    package var y: Int

    package init(x: Int, y: Int) {
        self.x = x
        self.y = y
    }

    package static let center = Gravity(x: 500, y: 500)

    /// Returns the first of `part` samples out of `whole`, centred on the point at `thousandths` as far as the edges allow.
    static func offset(of part: Int, in whole: Int, at thousandths: Int) -> Int {
        min(max(0, (2 * thousandths * whole - 1000 * part) / 2000), whole - part)
    }
}

/// The part of an animation that a video shows, its speed and its repetitions (docs/api.md).
package struct TimeOptions: Sendable, Hashable {
    /// The unit of ``speed`` and ``ceiling``: thousandths.
    package static let thousand = 1000

    /// In thousandths: 2000 is twice as fast.
    package var speed = Self.thousand
    /// The highest frame rate of the video in thousandths of frames per second; nil for no limit.
    package var ceiling: Int?
    /// Where the part begins, in hundredths of a second of the source's time.
    package var start = 0
    /// Where the part ends, in hundredths of a second of the source's time; nil, or past the end, for the end of the source.
    package var end: Int?
    /// The number of times the animation plays in the file.
    package var loops = 1
}

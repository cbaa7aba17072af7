/// What a video or a poster is to be like (API.md §1). What has no effect on a format is not looked at there.
package struct TranscodeOptions: Sendable, Hashable {
    /// 1…100; see ``H264Settings/rateFactor(quality:)``.
    package var quality: Int
    /// What transparent pixels are laid on.
    package var background: RGB
    package var size: SizeOptions
    package var time: TimeOptions
    /// The frame that a poster shows, counted from 0; past the end: the last one.
    package var frame: Int

    package init(
        quality: Int = 60, background: RGB = .white, size: SizeOptions = SizeOptions(), time: TimeOptions = TimeOptions(),
        frame: Int = 0
    ) {
        self.quality = quality
        self.background = background
        self.size = size
        self.time = time
        self.frame = frame
    }
}

/// The size that a picture is to have; never larger than the canvas (API.md §1).
package struct SizeOptions: Sendable, Hashable {
    /// Pixels; nil follows from the height, or is the canvas' own.
    package var width: Int?
    /// Pixels; nil follows from the width, or is the canvas' own.
    package var height: Int?
    package var fit: Fit

    /// How a picture is brought into a box of another shape. The raw value crosses the worker's border.
    package enum Fit: UInt8, Sendable, CaseIterable {
        /// All of it, inside the box.
        case contain
        /// The whole box, what sticks out cut off on both sides alike.
        case cover
        /// The whole box, by distorting the picture.
        case fill
    }

    package init(width: Int? = nil, height: Int? = nil, fit: Fit = .contain) {
        self.width = width
        self.height = height
        self.fit = fit
    }
}

/// Which part of an animation a video shows, how fast and how often (API.md §1).
package struct TimeOptions: Sendable, Hashable {
    /// What ``speed`` and ``ceiling`` are counted in.
    package static let thousand = 1000

    /// In thousandths: 2000 is twice as fast.
    package var speed: Int
    /// Thousandths of frames a second of the video, of which there are never more; nil for all there are.
    package var ceiling: Int?
    /// Where it begins, in hundredths of a second of the GIF's own time.
    package var start: Int
    /// Where it ends, in hundredths of a second of the GIF's own time; nil, or past the end, for the GIF's end.
    package var end: Int?
    /// How often the animation stands in the file.
    package var loops: Int

    package init(speed: Int = Self.thousand, ceiling: Int? = nil, start: Int = 0, end: Int? = nil, loops: Int = 1) {
        self.speed = speed
        self.ceiling = ceiling
        self.start = start
        self.end = end
        self.loops = loops
    }
}

internal import Media
internal import Renditions
internal import Store
internal import SystemIO

/// The facts of a GIF that its page depends on.
struct PageFacts {
    private let facts: SourceFacts
    let blur: PlayerPage.Blur?

    /// - Parameter rendition: A rendition of the format `json`.
    /// - Returns: Nil if the facts cannot be read.
    init?(_ rendition: CachedRendition) {
        guard let document = FactsFile.read(rendition) else { return nil }
        facts = document.source.facts
        blur = document.placeholder?.image.map { PlayerPage.Blur(image: $0, hash: document.blurhash ?? "") }
    }

    /// The image that a page shows in place of its video.
    enum Image {
        case animation
        /// A picture that does not move.
        case still
        /// The poster of an animation that flashes.
        case poster
    }

    /// The image that a page shows in place of its video; nil for the video.
    ///
    /// Still and tiny pictures stay images (``PageRule``). Transparent ones do too, because a video has no transparency, unless
    /// the page has a background of its own.
    ///
    /// - Parameter statesBackground: Whether the request states a background, which may be the default one.
    func image(of page: Rendition, statesBackground: Bool) -> Image? {
        if facts.frames <= 1 { return .still }
        let hasOwnBackground = statesBackground || page.options.background != TranscodeOptions.standard.background
        if facts.transparent { return hasOwnBackground ? nil : .animation }
        let size = size(of: page)
        // An icon that the page resizes is shown as a video.
        let isResized = size.width != facts.width || size.height != facts.height
        return !isResized && PageRule.isTiny(width: facts.width, height: facts.height) ? .animation : nil
    }

    /// The poster of a page. It shows the frame with which the video begins, unless the page names another one.
    func poster(of page: Rendition) throws(Problem) -> Rendition {
        var poster = page.inFormat(.jpg)
        let start = page.options.time.start
        guard start > 0, page.options.frame == .number(0) else { return poster }
        try translating(
            try poster.set(RenditionOption.frame.rawValue, to: String(frame(at: Double(start) / 100))), to: Problem.init)
        return poster
    }

    /// Returns the frame that is shown at a time in seconds; the last frame if the time is past the end.
    private func frame(at time: Double) -> Int {
        var end = 0.0
        return facts.delays.enumerated().first { index, delay in
            end += delay
            // A delay may be rounded to a microsecond.
            return end > time + 1e-6 * Double(index + 1)
        }?.offset ?? facts.frames - 1
    }

    /// Returns the poster within the bounds of an oEmbed thumbnail.
    ///
    /// - Parameter widths: The permitted widths of smaller posters, in ascending order; nil for any.
    /// - Returns: Nil if no poster is small enough.
    func bounded(
        _ poster: Rendition, maxWidth: Int?, maxHeight: Int?, widths: [Int]? = nil
    ) throws(Problem) -> Rendition? {
        let size = size(of: poster)
        let (width, height) = OEmbed.fit(size.width, size.height, maxWidth, maxHeight)
        if (width, height) == (size.width, size.height) { return poster }
        guard let widths else { return try resized(poster, width: width, height: height) }
        for step in widths.reversed() where step <= width {
            // With a rounded height, a picture that keeps its aspect ratio could be narrower than the step.
            let stepHeight: Int? = poster.options.size.fit == .contain ? nil : OEmbed.fit(size.width, size.height, step, nil).1
            guard let reduced = try resized(poster, width: step, height: stepHeight) else { continue }
            // The picture's height is rounded to the nearest integer, but the height within the bounds is rounded down.
            if self.size(of: reduced).height <= maxHeight ?? .max { return reduced }
        }
        return nil
    }

    /// Returns the poster in another size; nil if no option can express it.
    private func resized(_ poster: Rendition, width: Int, height: Int?) throws(Problem) -> Rendition? {
        guard width >= 2, height ?? 2 >= 2 else { return nil }
        var resized = poster
        do throws(RenditionError) {
            // A size replaces the zoom, with which it cannot be combined.
            try resized.set(RenditionOption.zoom.rawValue, to: "1")
            try resized.set(RenditionOption.width.rawValue, to: String(width))
            if let height { try resized.set(RenditionOption.height.rawValue, to: String(height)) }
        } catch {
            throw Problem(error)
        }
        return resized
    }

    /// The number of times that the video of a page plays; nil for an endless loop.
    func playCount(of page: Rendition) -> Int? {
        PlayCount.of(loopCount: facts.loopCount, repetitions: page.options.time.loops)
    }

    func size(of rendition: Rendition) -> PictureGeometry {
        PictureGeometry(width: facts.width, height: facts.height, options: rendition.options)
    }
}

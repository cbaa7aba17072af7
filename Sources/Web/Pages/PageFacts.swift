internal import Cache
internal import Media
internal import Renditions

/// The facts of a GIF that its page depends on.
struct PageFacts {
    private let facts: SourceFacts

    /// - Parameter rendition: Of the format `json`.
    /// - Returns: Nil where the facts cannot be read.
    init?(_ rendition: CachedRendition) {
        guard let facts = FactsFile.read(rendition) else { return nil }
        self.facts = facts
    }

    /// The poster of a page: of the frame that its video begins with, unless the page names another.
    func poster(of page: Rendition) throws(Problem) -> Rendition {
        var poster = page.inFormat(.jpg)
        let start = page.options.time.start
        guard start > 0, page.options.frame == 0 else { return poster }
        var end = 0
        let frame = facts.delays.firstIndex { delay in
            end += Int((delay * 100).rounded())
            return end > start
        }
        do throws(RenditionError) {
            try poster.set(RenditionOption.frame.rawValue, to: String(frame ?? facts.frames - 1))
        } catch {
            throw Problem(error)
        }
        return poster
    }

    /// The poster within bounds, as oEmbed demands of thumbnails.
    ///
    /// - Returns: Nil where a bound is smaller than any poster.
    func bounded(_ poster: Rendition, maxWidth: Int?, maxHeight: Int?) throws(Problem) -> Rendition? {
        let size = size(of: poster)
        let (width, height) = OEmbed.fit(size.width, size.height, maxWidth, maxHeight)
        if (width, height) == (size.width, size.height) { return poster }
        guard width >= 2, height >= 2 else { return nil }
        var bounded = poster
        do throws(RenditionError) {
            try bounded.set(RenditionOption.width.rawValue, to: String(width))
            try bounded.set(RenditionOption.height.rawValue, to: String(height))
        } catch {
            throw Problem(error)
        }
        return bounded
    }

    /// What the page shows.
    func contents(of page: Rendition, poster: Rendition, name: String, links: PageLinks) -> PlayerPage.Contents {
        let video = size(of: page)
        let still = size(of: poster)
        return PlayerPage.Contents(
            name: name, links: links, width: (video.width + 1) & ~1, height: (video.height + 1) & ~1,
            posterWidth: still.width, posterHeight: still.height,
            plays: PlayerPage.plays(loopCount: facts.loopCount, repeats: page.options.time.loops))
    }

    /// The pixels of a rendition's picture, before a video's sides become even.
    private func size(of rendition: Rendition) -> PictureGeometry {
        PictureGeometry(width: facts.width, height: facts.height, options: rendition.options.size)
    }
}

internal import Cache
internal import Media

/// What a page has to know of a GIF.
struct PageFacts {
    private let facts: SourceFacts

    /// - Parameter rendition: Of the format `json`.
    /// - Returns: Nil where it cannot be read.
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
        try poster.set(RenditionOption.frame.rawValue, to: String(frame ?? facts.frames - 1))
        return poster
    }

    /// What the page shows.
    func contents(of page: Rendition, name: String, links: PageLinks) -> PlayerPage.Contents {
        let size = PictureGeometry(width: facts.width, height: facts.height, options: page.options.size)
        return PlayerPage.Contents(
            name: name, links: links, width: (size.width + 1) & ~1, height: (size.height + 1) & ~1,
            posterWidth: size.width, posterHeight: size.height,
            plays: PlayerPage.plays(loopCount: facts.loopCount, repeats: page.options.time.loops))
    }
}

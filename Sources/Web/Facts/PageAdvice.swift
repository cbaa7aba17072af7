internal import Media
internal import Renditions

/// The treatment of an image by a page, with its addresses: the member `page` of `json` and of `POST /facts` (docs/api.md).
enum PageAdvice {
    /// A stored rendition.
    struct Stored {
        let bytes: Int64
        /// The media type, with the parameter `codecs` if it is known.
        let type: String
    }

    /// The advice about a source.
    ///
    /// - Parameters:
    ///   - source: Nil if its facts are not known.
    ///   - rendition: Returns the rendition in a format, with the options that the page wants.
    static func page(
        _ source: PageRule.Source?, _ addresses: RenditionAddresses, _ rendition: (Rendition.Format) -> Rendition,
        stored: (Rendition) -> Stored?
    ) -> FactsDocument.Page {
        let verdict = source.map { PageRule.verdict($0) { stored(rendition($0))?.bytes } } ?? (use: .image, reason: nil)
        var page = FactsDocument.Page(use: verdict.use, reason: verdict.reason)
        // Unlike a JPEG, a WebP can be transparent, and every browser shows it.
        let still: Rendition.Format = source?.isTransparent == false ? .jpg : .webp
        if verdict.reason != .still, verdict.reason != .tiny {
            page.still = addresses.target(rendition(still))
        }
        if verdict.use != .stay { page.src = addresses.automatic(of: rendition(.mp4)) }
        if verdict.use == .video { page.video = videos(addresses, rendition(.mp4), stored) }
        return page
    }

    /// The advice about a source that the server does not convert.
    static func stays(_ reason: PageRule.Reason) -> FactsDocument.Page { FactsDocument.Page(use: .stay, reason: reason) }

    /// The stored encodings of the video, which is in H.264, in the order in which a browser tries them.
    private static func videos(
        _ addresses: RenditionAddresses, _ video: Rendition, _ stored: (Rendition) -> Stored?
    ) -> [FactsDocument.Page.Video] {
        guard let h264 = stored(video) else { return [] }
        var offered = [(video, h264)]
        if let smaller = video.encoded(by: .av1), let av1 = stored(smaller),
            Rendition.isWorthOffering(av1: av1.bytes, besideH264: h264.bytes)
        {
            offered.insert((smaller, av1), at: 0)
        }
        return offered.map { rendition, stored in
            FactsDocument.Page.Video(src: addresses.target(rendition), type: stored.type)
        }
    }
}

internal import Media
internal import Renditions
internal import Store

/// Composes the body of `json`: the stored facts of a GIF and the renditions that are stored at the moment.
///
/// It starts no conversion. A rendition counts as stored whatever URL it was produced for.
struct FactsComposer: Sendable {
    let cache: Cache
    /// The renditions that addresses without options name.
    let defaults: RenditionDefaults

    /// Composes the document.
    ///
    /// - Parameter addresses: The addresses of the source's renditions; nil for an upload.
    /// - Returns: The body and the time of its last change, in seconds since 1970; nil if the stored facts cannot be read.
    func compose(
        _ file: CachedRendition, _ addresses: RenditionAddresses?
    ) async -> (bytes: [UInt8], lastModified: Int)? {
        guard var document = FactsFile.read(file), let digest = SourceDigest(hex: document.source.facts.sha256) else {
            return nil
        }
        let format = SourceFormat.allCases.first { $0.name == document.source.facts.type } ?? .gif
        var lastModified = file.created
        var renditions: [String: FactsDocument.Rendition] = [:]
        for listed in Rendition.listed {
            let rendition = defaults.applied(to: listed)
            let id = ObjectID(digest, format, rendition)
            let stored = (try? await cache.rendition(for: id, countsMiss: false)) ?? nil
            // An upload has no address; its stored renditions have the addresses of objects.
            guard let url = addresses?.target(rendition) ?? stored.map(RenditionResponder.path) else { continue }
            renditions[listed.canonicalText] =
                stored.map { Self.entry(url, rendition.format, length: $0.length, facts: $0.facts) }
                ?? FactsDocument.Rendition(url: url)
            lastModified = max(lastModified, stored?.created ?? 0)
        }
        if let addresses {
            let source = PageRule.Source(document.source.facts)
            document.page = PageAdvice.page(source, addresses, defaults.rendition) { rendition in
                let listed = Rendition.listed.first { defaults.applied(to: $0) == rendition } ?? rendition
                let entry = renditions[listed.canonicalText]
                return entry.flatMap { entry in
                    entry.bytes.map { PageAdvice.Stored(bytes: $0, type: entry.type ?? rendition.format.contentType) }
                }
            }
        }
        Self.removeInferior(&renditions, sourceBytes: document.source.facts.bytes)
        document.source.url = addresses?.sourceText
        document.renditions = renditions
        return (document.encoded, Int(lastModified))
    }

    /// Removes stored renditions that save too little: clients that prefer their formats would load more bytes, or as many.
    static func removeInferior(_ renditions: inout [String: FactsDocument.Rendition], sourceBytes: Int) {
        for listed in Rendition.listed {
            guard let bytes = renditions[listed.canonicalText]?.bytes else { continue }
            let isInferior =
                if listed.format.isSequence {
                    bytes > sourceBytes
                } else if let video = listed.comparedWith {
                    renditions[video.canonicalText]?.bytes.map { !Rendition.isWorthOffering(av1: bytes, besideH264: $0) }
                        ?? false
                } else {
                    false
                }
            if isInferior { renditions[listed.canonicalText] = nil }
        }
    }

    static func entry(
        _ url: String, _ format: Rendition.Format, length: Int64, facts: [UInt8]
    ) -> FactsDocument.Rendition {
        var entry = FactsDocument.Rendition(url: url, type: format.contentType, bytes: length)
        // An older version may have stored the facts in another form. In that case the entry has only its address, type and
        // size.
        guard let facts = RenditionFacts(stored: facts) else { return entry }
        entry.type = format.mediaType(codecs: facts.codecs)
        entry.width = facts.width
        entry.height = facts.height
        if facts.duration > 0 { entry.duration = Double(facts.duration) / Double(facts.timescale) }
        entry.undithered = facts.undithered
        return entry
    }
}

/// The treatment of an image by a page, with its addresses: the member `page` of `json` and of `POST /facts` (docs/api.md).
enum PageAdvice {
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

internal import Cache
internal import Crypto
internal import Fetch
internal import HTTP

/// Answers `json`: what is stored of a GIF, and which of its renditions there are at the moment.
///
/// Nothing is made for it. A rendition counts as made where its object is stored, whichever URL it was made for.
struct FactsDesk: Sendable {
    /// Formats that are told of.
    private static let formats: [Rendition.Format] = [.mp4, .jpg, .png, .webp]

    let cache: Cache
    let signer: TargetSigner

    /// Where the facts' GIF is from.
    enum Origin: Sendable {
        /// - expires: Of the request's signature, and so of those that are given out; in seconds since 1970.
        case url(SourceURL, expires: Int64?)
        case upload
    }

    /// The body, and when something of it last changed, in seconds since 1970; nil where the stored facts cannot be read.
    func document(_ stored: CachedRendition, _ origin: Origin) async -> (bytes: [UInt8], lastModified: Int)? {
        guard let facts = FactsFile.read(stored), let digest = SourceDigest(hex: facts.sha256) else { return nil }
        var lastModified = stored.created
        var renditions: [String: FactsDocument.Rendition] = [:]
        for format in Self.formats {
            let rendition = Rendition(format: format)
            let id = ObjectID(source: digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
            let made = await cache.object(id, isFirstLook: false)
            guard let url = url(of: format, made, origin) else { continue }
            renditions[format.rawValue] = Self.entry(url, made)
            lastModified = max(lastModified, made?.created ?? 0)
        }
        let source = FactsDocument.Source(url: origin.url?.canonical, facts: facts)
        return (FactsDocument(source: source, renditions: renditions).encoded, Int(lastModified))
    }

    /// The address of a rendition. One of an upload has none before it is made.
    private func url(of format: Rendition.Format, _ made: CachedRendition?, _ origin: Origin) -> String? {
        switch origin {
        case .url(let url, let expires): signer.target(format, of: url, expires: expires)
        case .upload: made.map(RenditionAnswer.path)
        }
    }

    private static func entry(_ url: String, _ made: CachedRendition?) -> FactsDocument.Rendition {
        guard let made else { return FactsDocument.Rendition(url: url) }
        var entry = FactsDocument.Rendition(url: url, bytes: made.length)
        // What is not understood is left out: the address is what counts.
        guard let facts = RenditionFacts(stored: made.facts) else { return entry }
        entry.width = facts.width
        entry.height = facts.height
        if facts.duration > 0 { entry.duration = Double(facts.duration) / Double(facts.timescale) }
        return entry
    }

    /// A strong entity tag for bytes.
    static func entityTag(_ bytes: [UInt8]) -> String {
        "\"" + SHA256.hash(data: bytes).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() + "\""
    }
}

extension FactsDesk.Origin {
    var url: SourceURL? {
        if case .url(let url, _) = self { return url }
        return nil
    }
}

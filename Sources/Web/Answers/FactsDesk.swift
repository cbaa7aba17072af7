internal import Cache
internal import Crypto
internal import HTTP
internal import Renditions

/// Composes the body of `json`: the stored facts of a GIF, and which of its renditions are stored at the moment.
///
/// It encodes nothing. A rendition counts as stored whichever URL it was made for.
struct FactsDesk: Sendable {
    /// The formats that the document lists.
    private static let formats = Rendition.Format.allCases.filter(\.isAnsweredAsStored)

    let cache: Cache

    /// Composes the document.
    ///
    /// - Parameter addresses: Of the source; nil for an upload.
    /// - Returns: The body, and when something in it last changed, in seconds since 1970; nil where the stored facts cannot
    ///   be read.
    func document(
        _ stored: CachedRendition, _ addresses: RenditionAddresses?
    ) async -> (bytes: [UInt8], lastModified: Int)? {
        guard let facts = FactsFile.read(stored), let digest = SourceDigest(hex: facts.sha256) else { return nil }
        var lastModified = stored.created
        var renditions: [String: FactsDocument.Rendition] = [:]
        for format in Self.formats {
            let rendition = Rendition(format: format)
            let id = ObjectID(source: digest, rendition: rendition.canonicalText, encoderVersion: rendition.encoderVersion)
            let made = await cache.object(id, isFirstLook: false)
            // An upload has no addresses but those of stored objects.
            guard let url = addresses?.target(rendition) ?? made.map(RenditionAnswer.path) else { continue }
            renditions[format.rawValue] = Self.entry(url, made)
            lastModified = max(lastModified, made?.created ?? 0)
        }
        let source = FactsDocument.Source(url: addresses?.sourceText, facts: facts)
        return (FactsDocument(source: source, renditions: renditions).encoded, Int(lastModified))
    }

    private static func entry(_ url: String, _ made: CachedRendition?) -> FactsDocument.Rendition {
        guard let made else { return FactsDocument.Rendition(url: url) }
        var entry = FactsDocument.Rendition(url: url, bytes: made.length)
        // Facts that an older version wrote differently are left out: the address is enough.
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

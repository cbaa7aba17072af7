internal import Media
package import Store

/// A part of the stored sources, compared with the block list: the body of `GET /cache?blocked=true` (docs/api.md).
package struct BlockedSources: Codable, Sendable {
    package struct Source: Codable, Sendable {
        /// The canonical URL.
        package let url: String
        /// The label of the block list's entry.
        package let label: String
    }

    /// The sources on the list, in the order of their URLs.
    package var blocked: [Source] = []
    /// The number of sources that were compared.
    package var compared = 0
    /// The number of sources without stored fingerprints, which were compared at most by the hash of their file.
    package var withoutFingerprints = 0
    /// The value of `after` for the next part; nil for the last.
    package var next: String?
}

extension RenditionPipeline {
    /// Compares stored sources with the block list by their stored facts. Fetches nothing.
    ///
    /// - Parameters:
    ///   - url: ``BlockedSources/next`` of the previous part; empty for the first.
    ///   - limit: The time limit; at least one source is compared.
    package func blockedSources(
        after url: String, within limit: Duration = .seconds(2)
    ) async throws(CacheError) -> BlockedSources {
        var part = BlockedSources()
        guard let blocks else { return part }
        let end = ContinuousClock.now + limit
        var last = url
        while true {
            let urls = try await cache.sources(after: last)
            if urls.isEmpty { return part }
            for url in urls {
                last = url
                var facts = try await storedFacts(.facts(.fingerprints), of: url)
                if facts == nil {
                    part.withoutFingerprints += 1
                    facts = try await storedFacts(Rendition(format: .json), of: url)
                }
                part.compared += 1
                var label = try await storedSource(of: url).flatMap { blocks.label(of: $0) }
                if let facts, label == nil {
                    label = try await cache.onThread { () throws(CacheError) in blocks.label(of: facts) }
                }
                if let label { part.blocked.append(BlockedSources.Source(url: url, label: label)) }
                if ContinuousClock.now >= end {
                    part.next = last
                    return part
                }
            }
        }
    }

    /// The digest of a source that is stored unchanged. A still image has no facts.
    private func storedSource(of url: String) async throws(CacheError) -> SourceDigest? {
        let key = AliasKey(sourceURL: url, rendition: Rendition(format: .original).canonicalText)
        return try await cache.rendition(for: key, countsMiss: false).flatMap { SourceDigest(bytes: $0.content.bytes) }
    }

    /// A stored document with facts; nil if there is none, or if it cannot be read.
    private func storedFacts(_ rendition: Rendition, of url: String) async throws(CacheError) -> FactsDocument? {
        let key = AliasKey(sourceURL: url, rendition: rendition.canonicalText)
        guard let stored = try await cache.rendition(for: key, countsMiss: false) else { return nil }
        return try await cache.onThread { () throws(CacheError) in FactsFile.read(stored) }
    }
}

extension BlockList {
    /// The label of the entry for a source with these facts; nil if there is none.
    func label(of facts: FactsDocument) -> String? {
        SourceDigest(hex: facts.source.facts.sha256).flatMap { label(of: $0) } ?? label(of: facts.hashes)
    }
}

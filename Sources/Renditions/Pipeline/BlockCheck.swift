internal import Cache
internal import Media
internal import Sandbox
internal import SystemIO

extension RenditionProducer {
    /// Compares a source with the block list, before anything is made of it. If the list has pictures, the fingerprints of the source are
    /// computed, and stored unless it is on the list, so that they are computed once.
    ///
    /// A source that cannot be decoded has no pictures: only its bytes are compared.
    ///
    /// - Parameters:
    ///   - production: Any rendition of the source.
    ///   - storing: Whether fingerprints are stored.
    /// - Throws: ``RenditionError/blocked(label:)``; another error if the fingerprints cannot be computed now.
    func check(_ production: Production, _ flight: Flight, storing: Bool = true) async throws(RenditionError) {
        guard let blocks else { return }
        if let label = blocks.label(of: production.source.digest) { throw .blocked(label: label) }
        guard blocks.hasHashes else { return }
        let fingerprints = production.fingerprints
        if let known = try await reuse(fingerprints) { return try await compare(known.rendition.descriptor, with: blocks) }
        let conversion: Converter.Conversion
        do throws(RenditionError) {
            conversion = try await convert(production.source, fingerprints.rendition, flight)
        } catch {
            if error.isOfUndecodableSource { return }
            throw error
        }
        try await compare(conversion.file.descriptor, with: blocks)
        guard storing else { return }
        let facts = RenditionFacts(
            conversion.report.result, of: .json, codecs: nil, sourceBytes: production.source.count)
        // Without a place to store them, the next check computes them again.
        _ = try? await publish(conversion.file, fingerprints, facts: facts)
    }

    /// - Parameter file: A document with fingerprints.
    private func compare(_ file: SharedDescriptor, with blocks: BlockList) async throws(RenditionError) {
        let label: Result<String?, RenditionError>
        do throws(CacheError) {
            label = try await cache.onThread { () throws(CacheError) in
                Result { () throws(RenditionError) in blocks.label(of: try FactsFile.hashes(in: file)) }
            }
        } catch {
            throw RenditionError(error)
        }
        if let label = try label.get() { throw .blocked(label: label) }
    }
}

extension RenditionError {
    /// Whether the bytes of the source are the reason, and not a limit of the machine.
    fileprivate var isOfUndecodableSource: Bool {
        guard case .conversionFailed(.rejected(let cause), _) = self, cause != .outOfMemory else { return false }
        return retry == .never
    }
}

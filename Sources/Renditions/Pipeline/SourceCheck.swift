internal import Media
internal import Sandbox
internal import Store
internal import SystemIO

extension RenditionProducer {
    /// Compares a source with the block list, and counts its flashes if the rendition moves, before any conversion. Stores the
    /// facts that this requires, so that they are computed once, unless the source is on the list.
    ///
    /// A source that cannot be decoded has no pictures: only its bytes are compared.
    ///
    /// - Throws: ``RenditionError/blocked(label:)``; ``RenditionError/flashing(general:red:)``, unless the limit is off;
    ///   another error if the facts cannot be computed now.
    func check(_ job: RenditionJob, _ flight: Flight, storing: Bool = true) async throws(RenditionError) {
        if let blocks {
            if let label = blocks.label(of: job.source.digest) { throw .blocked(label: label) }
            if blocks.hasHashes {
                try await judge(job.facts(.fingerprints), flight, storing: { storing && $0 == nil }) { facts in
                    blocks.label(of: facts.hashes).map { .blocked(label: $0) }
                }
            }
        }
        if flashes != .off, job.rendition.format.isMoving {
            try await judge(job.facts(.flashes), flight, storing: { _ in storing }) { facts in
                guard let found = facts.flashes, max(found.general, found.red) > Flashes.allowed else { return nil }
                return .flashing(general: found.general, red: found.red)
            }
        }
    }

    /// Throws the objection that the facts of a source lead to. Reads stored facts, or computes them, and stores facts for whose
    /// objection `storing` returns true.
    private func judge(
        _ facts: RenditionJob, _ flight: Flight, storing: (RenditionError?) -> Bool,
        by objection: @escaping @Sendable (FactsDocument) -> RenditionError?
    ) async throws(RenditionError) {
        if let known = try await reuse(facts) {
            if let objection = try await read(known.rendition.descriptor, objection) { throw objection }
            return
        }
        let conversion: Converter.Conversion
        do throws(RenditionError) {
            conversion = try await convert(facts.source, facts.rendition, flight)
        } catch {
            if error.isOfUndecodableSource { return }
            throw error
        }
        let found = try await read(conversion.file.descriptor, objection)
        if storing(found) {
            let description = RenditionFacts(
                conversion.report.result, of: .json, codecs: nil, sourceBytes: facts.source.count)
            // If the facts cannot be stored, the next check computes them again.
            _ = try? await publish(conversion.file, facts, facts: description)
        }
        if let found { throw found }
    }

    /// - Parameter file: A document with facts.
    private func read(
        _ file: SharedDescriptor, _ objection: @escaping @Sendable (FactsDocument) -> RenditionError?
    ) async throws(RenditionError) -> RenditionError? {
        try await cache.onThread { () throws(RenditionError) in objection(try FactsFile.document(in: file)) }
    }
}

extension RenditionError {
    /// Whether the bytes of the source are the reason, and not a limit of the machine.
    fileprivate var isOfUndecodableSource: Bool {
        guard case .conversionFailed(.rejected(let cause), _) = self, cause != .outOfMemory else { return false }
        return retry == .never
    }
}

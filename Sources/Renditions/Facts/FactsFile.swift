internal import Glibc
package import Media
package import Store
package import SystemIO

/// The file with a GIF's facts: a ``FactsDocument`` without renditions, because those change.
package enum FactsFile {
    /// Replaces the file that a worker wrote for ``OutputFormat/facts`` by the document, after the worker has ended.
    ///
    /// - Parameters:
    ///   - bytes: The size of the GIF in bytes.
    ///   - requested: The facts that the document contains in addition to the usual ones.
    /// - Throws: ``RenditionError/factsUnusable(cause:)`` if the file differs from the worker's description, or cannot be
    ///   written.
    package static func write(
        _ result: TranscodeResult, of digest: SourceDigest, bytes: Int, with requested: TranscodeOptions.Facts?,
        to file: SharedDescriptor
    ) throws(RenditionError) -> Int {
        do throws(SystemError) {
            let written = try file.readAll()
            let parts = FactsOutput.parts(written, frames: result.frames)
            guard let placeholder = Placeholder(parts.placeholder),
                let facts = SourceFacts(result, delays: parts.delays, of: digest, bytes: bytes)
            else {
                throw SystemError("the worker's file differs from its description", code: EBADMSG)
            }
            var document = FactsDocument(facts: facts, placeholder)
            switch requested {
            case .fingerprints: document.fingerprints = FactsFingerprint.list(parts.requested, delays: parts.delays)
            case .flashes:
                document.flashes = Flashes(parts.requested).map { FactsFlashes($0, timescale: result.timescale) }
            case nil: break
            }
            // A document that readers would refuse must not be stored.
            guard (document.fingerprints != nil) == (requested == .fingerprints),
                (document.flashes != nil) == (requested == .flashes), document.isInRange
            else {
                throw SystemError("the worker's file differs from its description", code: EBADMSG)
            }
            let encoded = document.encoded
            _ = try retryingOnInterrupt("ftruncate") { Int(ftruncate(file.number, 0)) }
            try DescriptorIO.write(encoded, to: file.number, at: 0)
            return encoded.count
        } catch {
            throw .factsUnusable(cause: "\(error)")
        }
    }

    /// Whether ``read(_:)`` returns without reading the file.
    static func isKnown(_ rendition: CachedRendition) -> Bool { rendition.attachment is Parsed }

    /// The facts of a stored document that has already been read; nil if it has not.
    package static func known(_ rendition: CachedRendition) -> SourceFacts? {
        (rendition.attachment as? Parsed)?.document.source.facts
    }

    /// Returns the stored document; nil if it cannot be read. Blocks unless the document has been read before.
    package static func read(_ rendition: CachedRendition) -> FactsDocument? {
        if let known = rendition.attachment as? Parsed { return known.document }
        guard let document = try? document(in: rendition.descriptor) else { return nil }
        rendition.attach(Parsed(document))
        return document
    }

    /// Reads the document in a file. Blocks.
    ///
    /// - Throws: ``RenditionError/factsUnusable(cause:)`` if it cannot be read.
    static func document(in file: SharedDescriptor) throws(RenditionError) -> FactsDocument {
        let bytes = try translating(try file.readAll()) { (error: SystemError) in
            RenditionError.factsUnusable(cause: "\(error)")
        }
        guard let document = FactsDocument(json: bytes), document.isInRange else {
            throw .factsUnusable(cause: "the document is damaged")
        }
        return document
    }

    /// The parsed document, attached to the open file.
    private final class Parsed: Sendable {
        let document: FactsDocument

        init(_ document: FactsDocument) {
            self.document = document
        }
    }
}

package import Cache
internal import Foundation
internal import Glibc
package import Media
package import SystemIO

/// The file with a GIF's facts: a ``FactsDocument`` without renditions, because those change.
package enum FactsFile {
    /// Replaces the file that a worker wrote for ``OutputFormat/facts`` by the document, after the worker has ended.
    ///
    /// - Parameter bytes: The size of the GIF in bytes.
    /// - Throws: ``RenditionError/factsUnusable(cause:)`` if the file differs from the worker's description, or cannot be written.
    package static func write(
        _ result: TranscodeResult, of digest: SourceDigest, bytes: Int, to file: SharedDescriptor
    ) throws(RenditionError) -> Int {
        do throws(SystemError) {
            guard let facts = SourceFacts(result, delays: try file.readAll(), of: digest, bytes: bytes) else {
                throw SystemError("the worker's file differs from its description", code: EBADMSG)
            }
            let document = FactsDocument(source: FactsDocument.Source(url: nil, facts: facts), renditions: [:]).encoded
            _ = try retryingOnInterrupt("ftruncate") { Int(ftruncate(file.number, 0)) }
            try DescriptorIO.write(document, to: file.number, at: 0)
            return document.count
        } catch {
            throw .factsUnusable(cause: "\(error)")
        }
    }

    /// Returns the stored facts; nil if they cannot be read.
    package static func read(_ rendition: CachedRendition) -> SourceFacts? {
        if let known = rendition.attachment as? Parsed { return known.facts }
        do throws(SystemError) {
            let bytes = try rendition.descriptor.readAll()
            guard let document = try? JSONDecoder().decode(FactsDocument.self, from: Data(bytes)),
                document.source.facts.isInRange
            else { return nil }
            rendition.attach(Parsed(document.source.facts))
            return document.source.facts
        } catch {
            return nil
        }
    }

    /// The parsed facts, attached to the open file.
    private final class Parsed: Sendable {
        let facts: SourceFacts

        init(_ facts: SourceFacts) {
            self.facts = facts
        }
    }
}

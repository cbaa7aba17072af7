package import Cache
internal import Foundation
internal import Glibc
package import Media
package import SystemIO

/// The file in which a GIF's facts are stored: a ``FactsDocument`` without renditions, which come and go.
package enum FactsFile {
    /// Puts the document in place of what a worker wrote for ``OutputFormat/facts``. To be called when the worker is gone.
    ///
    /// - Parameter bytes: Of the GIF.
    /// - Throws: ``RenditionError`` where the file is not what the worker said, or cannot be written.
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

    /// The stored facts; nil where they cannot be read.
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

    /// The facts, kept beside the open file.
    private final class Parsed: Sendable {
        let facts: SourceFacts

        init(_ facts: SourceFacts) {
            self.facts = facts
        }
    }
}

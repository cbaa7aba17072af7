internal import Foundation
internal import Media
package import Store
internal import SystemIO

/// The facts that are stored with a rendition.
package struct RenditionFacts: Codable, Equatable {
    package var width: Int
    package var height: Int
    package var sourceWidth: Int
    package var sourceHeight: Int
    package var sourceBytes: Int
    package var frames: Int
    /// In units of ``timescale``; 0 for a poster.
    package var duration: Int
    /// Units per second.
    package var timescale: Int
    package var loopCount: Int?
    /// The parameter `codecs` of the file's media type (RFC 6381). Nil for a format without it, and in facts that an older
    /// version stored.
    package var codecs: String?
    /// Whether a shown frame of the source has transparent pixels. Nil for formats whose conversion does not determine it, and
    /// in facts that an older version stored.
    package var transparent: Bool?
    /// The format of the source: a name of ``SourceFormat``. Nil in facts that an older version stored.
    package var sourceType: String?
    /// True if the source breaks off before or within a frame; nil if it does not.
    private var breaksOff: Bool?
    /// True if dither was removed from the pictures; else nil.
    package private(set) var undithered: Bool?

    init(_ result: TranscodeResult, of format: Rendition.Format, codecs: String?, sourceBytes: Int) {
        self.codecs = codecs
        transparent = format == .json ? result.isTransparent : nil
        sourceType = result.sourceFormat.name
        width = result.width
        height = result.height
        sourceWidth = result.sourceWidth
        sourceHeight = result.sourceHeight
        self.sourceBytes = sourceBytes
        frames = result.frames
        duration = result.duration
        timescale = result.timescale
        loopCount = result.loopCount
        breaksOff = result.isBrokenOff ? true : nil
        undithered = result.isUndithered ? true : nil
    }

    /// Whether the source breaks off before or within a frame, so that later frames may be missing.
    package var isOfIncompleteSource: Bool { breaksOff ?? false }

    /// Whether negotiation sends the source instead. A still or tiny source does not replace a resized rendition.
    ///
    /// - Parameter length: Bytes of the rendition.
    package func staysSource(length: Int64) -> Bool {
        if !PageRule.isWorthwhile(length, insteadOf: Int64(sourceBytes)) { return true }
        // The sides of a video are even.
        let isResized = abs(width - sourceWidth) > 1 || abs(height - sourceHeight) > 1
        return !isResized
            && PageRule.reason(width: sourceWidth, height: sourceHeight, frames: frames, bytes: sourceBytes) != nil
    }

    /// Decodes the stored form; nil if it is damaged or a number is outside its range.
    package init?(stored bytes: [UInt8]) {
        guard let facts = try? JSONDecoder().decode(RenditionFacts.self, from: Data(bytes)), facts.isInRange else { return nil }
        self = facts
    }

    private var isInRange: Bool {
        [width, height, sourceWidth, sourceHeight].allSatisfy(FactRange.side.contains)
            && FactRange.bytes.contains(sourceBytes) && FactRange.frames.contains(frames)
            && FactRange.duration.contains(duration) && FactRange.timescale.contains(timescale)
            && loopCount.map(FactRange.loopCount.contains) ?? true && codecs.map(Self.isCodecs) ?? true
            && sourceType.map { name in SourceFormat.allCases.contains { $0.name == name } } ?? true
    }

    /// Whether a text consists of names and numbers, as in RFC 6381 section 3.3.
    private static func isCodecs(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: ",") }
    }

    /// The stored form: JSON.
    package var encoded: [UInt8] { JSONText.encode(self) }
}

extension CachedRendition {
    /// Whether the rendition's source breaks off. Decodes the stored facts.
    package var isOfIncompleteSource: Bool { RenditionFacts(stored: facts)?.isOfIncompleteSource ?? false }
}

/// The recognition of animations by their first bytes, never by a name or a declared type.
package enum ContentSniffer {
    package enum Judgement: Hashable, Sendable {
        /// The content begins like a GIF, an APNG, an animated WebP or AVIF, or a video clip. The PNG may still turn out not to
        /// be animated, and the clip to contain no video.
        case source
        /// The content is of another kind.
        case notAnAnimation(ContentKind)
        /// The decision needs more bytes.
        case undecided
    }

    /// The number of bytes with which the judgement is never ``Judgement/undecided``.
    package static let sufficient = 2048
    /// The number of bytes that suffice for all content but a PNG, whose palette, profile and texts precede its pixels.
    private static let usuallySufficient = 64

    /// Judges content by its first bytes.
    ///
    /// - Parameters:
    ///   - start: The first bytes; only ``sufficient`` of them count.
    ///   - isWhole: Whether `start` is the whole content.
    package static func judge(_ start: some Sequence<UInt8>, isWhole: Bool) -> Judgement {
        let all = Array(start.prefix(sufficient))
        let bytes = Array(all.prefix(usuallySufficient))
        if bytes.count >= signatureLength, signatures.contains(where: bytes.starts) { return .source }
        if !isWhole, bytes.count < signatureLength, signatures.contains(where: { $0.starts(with: bytes) }) { return .undecided }
        let kind = kind(of: bytes)
        switch kind {
        case .png: return StillPictures.judgePNG(all, isWhole: isWhole || all.count == sufficient)
        case .webp: return StillPictures.judgeWebP(bytes, isWhole: isWhole)
        case .avif: return bytes[8..<12].elementsEqual("avis".utf8) ? .source : .notAnAnimation(.avif)
        case .heic: return StillPictures.judgeHEIF(bytes, isWhole: isWhole || bytes.count == usuallySufficient)
        case .mp4, .quickTime, .webm: return .source
        default: break
        }
        let mayBecomeKnown =
            !isWhole && bytes.count < usuallySufficient && (kind == .unknown || kind == .text || kind == .empty)
        return mayBecomeKnown ? .undecided : .notAnAnimation(kind)
    }

    private static let signatureLength = 6
    private static let signatures = [Array("GIF87a".utf8), Array("GIF89a".utf8)]

    private static let magic: [(bytes: [UInt8], kind: ContentKind)] = [
        ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a], .png),
        ([0xff, 0xd8, 0xff], .jpeg),
        ([0xff, 0x0a], .jxl),
        ([0, 0, 0, 0x0c, 0x4a, 0x58, 0x4c, 0x20], .jxl),
        ([0x49, 0x49, 0x2a, 0], .tiff),
        ([0x4d, 0x4d, 0, 0x2a], .tiff),
        ([0, 0, 1, 0], .icon),
        ([0x1a, 0x45, 0xdf, 0xa3], .webm),
        (Array("%PDF-".utf8), .pdf),
        ([0x50, 0x4b, 3, 4], .zip),
        ([0x1f, 0x8b], .gzip),
        ([0x28, 0xb5, 0x2f, 0xfd], .zstandard),
        (Array("BM".utf8), .bmp),
        (Array("FLV\u{1}".utf8), .flv),
        (Array("OggS".utf8), .ogg),
        ([0x30, 0x26, 0xb2, 0x75, 0x8e, 0x66, 0xcf, 0x11], .wmv),
        // Packets of the first tables in a transport stream.
        ([0x47, 0x40, 0], .mpegTS),
        ([0x47, 0x40, 0x11], .mpegTS),
    ]

    private static func kind(of bytes: [UInt8]) -> ContentKind {
        if bytes.isEmpty { return .empty }
        if let kind = container(bytes) { return kind }
        if let match = magic.first(where: { bytes.starts(with: $0.bytes) }) { return match.kind }
        return markup(bytes) ?? (isText(bytes) ? .text : .unknown)
    }

    /// Returns the kind of a RIFF or ISO base media file, whose type follows a length; nil for other content.
    private static func container(_ bytes: [UInt8]) -> ContentKind? {
        guard bytes.count >= 12 else { return nil }
        let brand = String(decoding: bytes[8..<12], as: UTF8.self)
        if bytes.starts(with: "RIFF".utf8) {
            return brand == "WEBP" ? .webp : brand == "AVI " ? .avi : nil
        }
        let type = String(decoding: bytes[4..<8], as: UTF8.self)
        guard type == "ftyp" else {
            // Old QuickTime files and files with a prepended box begin with other boxes. The decoder inspects them further.
            if ["moov", "mdat", "wide"].contains(type) { return .quickTime }
            return bytes[0] == 0 && ["free", "skip", "uuid", "udta", "pnot"].contains(type) ? .quickTime : nil
        }
        switch brand {
        case "avif", "avis": return .avif
        case "heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1": return .heic
        case "jxl ": return .jxl
        case "crx ": return .unknown
        case "qt  ": return .quickTime
        default: return .mp4
        }
    }

    private static func markup(_ bytes: [UInt8]) -> ContentKind? {
        let byteOrderMark: [UInt8] = [0xef, 0xbb, 0xbf]
        let text = (bytes.starts(with: byteOrderMark) ? bytes[3...] : bytes[...]).drop { isSpace($0) }
        let start = String(decoding: text, as: UTF8.self).lowercased()
        if start.hasPrefix("<svg") { return .svg }
        if start.hasPrefix("<?xml") { return start.contains("<svg") ? .svg : .xml }
        let tags = [
            "<!doctype html", "<html", "<head", "<body", "<title", "<meta", "<script", "<!--", "<h1", "<p", "<div", "<center",
        ]
        if tags.contains(where: start.hasPrefix) { return .html }
        return start.hasPrefix("{") || start.hasPrefix("[") ? .json : nil
    }

    /// Whether the content begins with the mark of UTF-16, or has no control character that no text has (WHATWG MIME Sniffing
    /// §7.1). Error pages of any language and encoding are text.
    private static func isText(_ bytes: [UInt8]) -> Bool {
        if bytes.starts(with: [0xfe, 0xff]) || bytes.starts(with: [0xff, 0xfe]) { return true }
        return bytes.allSatisfy { isSpace($0) || $0 >= 0x20 || $0 == 0x1b }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || (0x09...0x0d).contains(byte)
    }
}

/// The kind of content indicated by its first bytes.
package enum ContentKind: String, Hashable, Sendable, CaseIterable {
    case gif = "GIF"
    case png = "PNG"
    case jpeg = "JPEG"
    case webp = "WebP"
    case avif = "AVIF"
    case heic = "HEIC"
    case jxl = "JPEG XL"
    case bmp = "BMP"
    case tiff = "TIFF"
    case icon = "ICO"
    case svg = "SVG"
    case mp4 = "MP4"
    case quickTime = "QuickTime"
    case webm = "WebM"
    case avi = "AVI"
    case flv = "FLV"
    case ogg = "Ogg"
    case wmv = "WMV"
    case mpegTS = "MPEG-TS"
    case html = "HTML"
    case xml = "XML"
    case json = "JSON"
    case pdf = "PDF"
    case zip = "ZIP"
    case gzip = "gzip"
    case zstandard = "Zstandard"
    /// Has no signature: only `Content-Encoding` names it.
    case brotli = "Brotli"
    case text = "text"
    case empty = "empty"
    case unknown = "unknown"

    /// Whether browsers show the content as an image, whatever its declared type, and never execute it.
    package var isShownAsImage: Bool { [.jpeg, .png, .webp, .avif].contains(self) }

    /// Returns a sentence about content that is not a source.
    ///
    /// - Parameter subject: The beginning of the sentence, such as “The file”.
    package func sentence(_ subject: String) -> String {
        switch self {
        case .empty: "\(subject) is empty."
        // If animated, these are sources.
        case .png, .webp, .avif: "This \(rawValue) has no animation."
        case .avi, .flv, .ogg, .wmv, .mpegTS:
            "\(subject) looks like \(rawValue). Of videos, MP4, QuickTime and WebM are accepted."
        case .unknown: "\(subject) is not an animation or a video."
        default: "\(subject) is not an animation or a video but looks like \(rawValue)."
        }
    }
}

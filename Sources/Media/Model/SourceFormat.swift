/// A format of source files. The raw value crosses the process border.
///
/// Each case has a decoder; ``OutputMaker`` connects the two.
package enum SourceFormat: UInt8, Sendable, CaseIterable {
    case gif = 1
    case apng
    case webp
    case mp4
    case mov
    case webm
    /// An image sequence.
    case avif

    /// Changes whenever the pixels, times or facts that the decoder reads from some file change.
    var version: String {
        switch self {
        case .gif, .apng: "source-3"
        case .webp: "source-4"
        case .mp4, .mov, .webm, .avif: "clip-3"
        }
    }

    /// The name in facts and settings: `a`…`z`.
    package var name: String {
        switch self {
        case .gif: "gif"
        case .apng: "apng"
        case .webp: "webp"
        case .mp4: "mp4"
        case .mov: "mov"
        case .webm: "webm"
        case .avif: "avif"
        }
    }

    /// The extensions of its files, in lower case.
    package var fileExtensions: [String] {
        switch self {
        case .gif: ["gif"]
        case .apng: ["apng", "png"]
        case .webp: ["webp"]
        case .mp4: ["mp4", "m4v"]
        case .mov: ["mov"]
        case .webm: ["webm"]
        case .avif: ["avif", "avifs"]
        }
    }

    package var mediaType: String {
        switch self {
        case .gif: "image/gif"
        // Clients that know no animations show the picture of a PNG.
        case .apng: "image/png"
        case .webp: "image/webp"
        case .mp4: "video/mp4"
        case .mov: "video/quicktime"
        case .webm: "video/webm"
        case .avif: "image/avif"
        }
    }

    /// The name of its files in sentences.
    package var title: String {
        switch self {
        case .gif: "GIF"
        case .apng: "PNG"
        case .webp: "WebP"
        case .mp4: "MP4"
        case .mov: "QuickTime file"
        case .webm: "WebM"
        case .avif: "AVIF"
        }
    }

    /// Whether its files are clips of video, whose times and colours players interpret in other ways than those of pictures.
    package var isVideo: Bool {
        switch self {
        case .gif, .apng, .webp, .avif: false
        case .mp4, .mov, .webm: true
        }
    }
}

/// A set of source formats.
package struct SourceFormats: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    package init(_ formats: some Sequence<SourceFormat>) {
        rawValue = formats.reduce(0) { $0 | Self.bit($1) }
    }

    package static let all = SourceFormats(SourceFormat.allCases)

    private static func bit(_ format: SourceFormat) -> UInt16 { 1 << UInt16(format.rawValue) }

    package func contains(_ format: SourceFormat) -> Bool { rawValue & Self.bit(format) != 0 }
}

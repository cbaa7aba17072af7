/// A format of source files. The raw value crosses the process border.
///
/// Each case has a decoder; ``OutputMaker`` connects the two.
package enum SourceFormat: UInt8, Sendable, CaseIterable {
    case gif = 1
    case apng
    case webp

    /// Changes whenever the pixels, times or facts that decoders read from some file change.
    static let version = "source-3"

    /// The name in facts and settings: `a`…`z`.
    package var name: String {
        switch self {
        case .gif: "gif"
        case .apng: "apng"
        case .webp: "webp"
        }
    }

    /// The extensions of its files, in lower case.
    package var fileExtensions: [String] {
        switch self {
        case .gif: ["gif"]
        case .apng: ["apng", "png"]
        case .webp: ["webp"]
        }
    }

    package var mediaType: String {
        switch self {
        case .gif: "image/gif"
        // Clients that know no animations show the picture of a PNG.
        case .apng: "image/png"
        case .webp: "image/webp"
        }
    }

    /// The name of its files in sentences.
    package var title: String {
        switch self {
        case .gif: "GIF"
        case .apng: "PNG"
        case .webp: "WebP"
        }
    }
}

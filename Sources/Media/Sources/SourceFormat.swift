/// A format of source files, recognized by its first bytes. The raw value crosses the process border.
///
/// Each case has a decoder; ``OutputMaker`` connects the two.
package enum SourceFormat: UInt8, Sendable, CaseIterable {
    case gif = 1
    case apng
    case webp

    /// The format of a file; nil if no decoder recognizes it. A PNG or WebP may be a still picture: see ``isAnimation(_:)``.
    package init?(of bytes: UnsafeRawBufferPointer) {
        guard let format = Self.allCases.first(where: { $0.recognizes(bytes) }) else { return nil }
        self = format
    }

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

    private func recognizes(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .gif: GIFReader.recognizes(bytes)
        case .apng: APNGReader.recognizes(bytes)
        case .webp: WebPReader.recognizes(bytes)
        }
    }

    /// Whether a file of the format says that it is an animation. A GIF with one frame is one, a PNG without `acTL` is not.
    package func isAnimation(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .gif: true
        case .apng: APNGReader.isAnimation(bytes)
        case .webp: WebPReader.isAnimation(bytes)
        }
    }

    /// The pixels of the canvas that the header of a file claims; 0 without one. The bytes need not be of a known format.
    package static func canvasPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        switch SourceFormat(of: bytes) {
        case .gif: GIFReader.screenPixels(of: bytes)
        case .apng: APNGReader.canvasPixels(of: bytes)
        case .webp: WebPReader.canvasPixels(of: bytes)
        case nil: 0
        }
    }
}

/// Everything that the program needs to know about a source format: one row of the table ``SourceFormat/traits``.
///
/// Recognition, settings, media types, facts, messages, versions and limits derive from it. Without a row, a new case of
/// ``SourceFormat`` does not compile; ``OutputMaker`` names its decoder.
package struct SourceTraits: Sendable {
    /// The name in facts and settings: `a`…`z`.
    package let name: String
    /// The file extensions, in lower case.
    package let fileExtensions: [String]
    package let mediaType: String
    /// The name of a file of the format in sentences.
    package let title: String
    /// The version of the decoder. Changes whenever it reads other pixels, times or facts from some file.
    let version: String
    /// Whether files are video clips, whose times and colours players interpret differently from those of pictures.
    var isVideo = false
    /// The factor of ``MediaLimits/pixelsPerByte``.
    var density = 1
    /// Whether a file begins like a file of the format, which may be a still picture.
    let recognizes: @Sendable (UnsafeRawBufferPointer) -> Bool
    /// Whether a file of the format declares itself an animation.
    var isAnimation: @Sendable (UnsafeRawBufferPointer) -> Bool = { _ in true }
    /// Returns the number of canvas pixels that a file's header claims; 0 if the header does not state it.
    var canvasPixels: @Sendable (UnsafeRawBufferPointer) -> Int = { _ in 0 }
}

extension SourceFormat {
    /// The format's row of the table.
    package var traits: SourceTraits {
        switch self {
        case .gif: .gif
        case .apng: .apng
        case .webp: .webp
        case .mp4: .mp4
        case .mov: .mov
        case .webm: .webm
        case .avif: .avif
        }
    }

    /// Detects the format of a file; nil if unknown. A PNG, WebP or AVIF may be a still picture: see ``isAnimation(_:)``.
    package init?(of bytes: UnsafeRawBufferPointer) {
        guard let format = Self.allCases.first(where: { $0.traits.recognizes(bytes) }) else { return nil }
        self = format
    }

    /// Whether a file of the format declares itself an animation. A GIF with one frame does, a PNG without `acTL` does not.
    package func isAnimation(_ bytes: UnsafeRawBufferPointer) -> Bool { traits.isAnimation(bytes) }

    /// Returns the number of canvas pixels that a file's header claims, or 0. The bytes need not be of a known format.
    package static func canvasPixels(of bytes: UnsafeRawBufferPointer) -> Int {
        SourceFormat(of: bytes)?.traits.canvasPixels(bytes) ?? 0
    }
}

extension SourceTraits {
    private static let pictures = "source-3"
    private static let clips = "clip-10"
    /// A video frame that repeats the previous frame takes a few bytes, whatever its size.
    private static let unlimited = Int.max

    fileprivate static let gif = SourceTraits(
        name: "gif", fileExtensions: ["gif"], mediaType: "image/gif", title: "GIF", version: pictures,
        recognizes: GIFReader.recognizes, canvasPixels: GIFReader.screenPixels)
    fileprivate static let apng = SourceTraits(
        // Clients that do not support APNG show the still picture of the PNG.
        name: "apng", fileExtensions: ["png", "apng"], mediaType: "image/png", title: "PNG", version: pictures,
        recognizes: APNGReader.recognizes, isAnimation: APNGReader.isAnimation, canvasPixels: APNGReader.canvasPixels)
    fileprivate static let webp = SourceTraits(
        name: "webp", fileExtensions: ["webp"], mediaType: "image/webp", title: "WebP", version: "source-4",
        // WebP codes uniform areas in fewer bytes than GIF and PNG do.
        density: 8, recognizes: WebPReader.recognizes, isAnimation: WebPReader.isAnimation,
        canvasPixels: WebPReader.canvasPixels)
    fileprivate static let mp4 = SourceTraits(
        name: "mp4", fileExtensions: ["mp4", "m4v"], mediaType: "video/mp4", title: "MP4", version: clips, isVideo: true,
        density: unlimited, recognizes: { ClipReader.format(of: $0) == .mp4 })
    fileprivate static let mov = SourceTraits(
        name: "mov", fileExtensions: ["mov"], mediaType: "video/quicktime", title: "QuickTime file", version: clips,
        isVideo: true,
        density: unlimited, recognizes: { ClipReader.format(of: $0) == .mov })
    fileprivate static let webm = SourceTraits(
        name: "webm", fileExtensions: ["webm"], mediaType: "video/webm", title: "WebM", version: clips, isVideo: true,
        density: unlimited, recognizes: { ClipReader.format(of: $0) == .webm })
    fileprivate static let avif = SourceTraits(
        name: "avif", fileExtensions: ["avif", "avifs"], mediaType: "image/avif", title: "AVIF", version: clips,
        density: unlimited, recognizes: { ClipReader.format(of: $0) == .avif }, isAnimation: ISOFile.isSequence)
}

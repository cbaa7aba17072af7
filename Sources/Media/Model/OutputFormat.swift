/// The outputs that a worker can create from an animation. The raw value crosses the process boundary.
///
/// ``OutputFormat/traits`` describes each case.
package enum OutputFormat: UInt8, Sendable, CaseIterable {
    /// A video in MP4.
    case mp4 = 1
    /// VP9 in WebM, with alpha where the source is transparent.
    case webm
    /// An AV1 image sequence, or a still image for a still source; with alpha where the source is transparent.
    case avif
    /// An animated WebP, or a still WebP for a still source; with alpha where the source is transparent.
    case awebp
    /// An animated GIF that looks the same in fewer bytes.
    case gif
    /// One frame as JPEG.
    case jpg
    /// One frame as PNG.
    case png
    /// One frame as WebP.
    case webp
    /// The facts of the animation; see ``FactsOutput``.
    case facts
}

/// The codec of a video. The raw value crosses the process boundary.
///
/// ``VideoCodec/traits`` describes each case.
package enum VideoCodec: UInt8, Sendable, CaseIterable {
    case h264 = 1
    case av1
}

/// A set of option groups in ``TranscodeOptions``.
package struct OptionGroups: OptionSet, Sendable {
    package let rawValue: UInt16

    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Width, height, fit and gravity.
    package static let size = OptionGroups(rawValue: 1)
    /// The colour behind transparent pixels.
    package static let background = OptionGroups(rawValue: 2)
    package static let quality = OptionGroups(rawValue: 4)
    /// Start, end, speed, frame rate and loops.
    package static let time = OptionGroups(rawValue: 8)
    /// The frame of a poster.
    package static let frame = OptionGroups(rawValue: 16)
    package static let codec = OptionGroups(rawValue: 32)
    package static let preset = OptionGroups(rawValue: 64)
    /// Changes to pixels before encoding: undithering and zoom.
    package static let pixels = OptionGroups(rawValue: 128)
    package static let tune = OptionGroups(rawValue: 256)
    /// The maximum file size.
    package static let budget = OptionGroups(rawValue: 512)
    /// Chroma subsampling.
    package static let chroma = OptionGroups(rawValue: 2048)
    /// Facts that are returned only on request.
    package static let facts = OptionGroups(rawValue: 4096)
    /// The quality `lossless`, as an accepted value and as the default.
    package static let lossless = OptionGroups(rawValue: 1024)
}

@testable import Media
import TestSupport

/// Composes GIFs for the tests.
enum Composing {
    /// The canvas after each frame, as RGBA words with alpha 0 for transparent.
    static func frames(_ gif: [UInt8], limits: MediaLimits = MediaLimits(side: 65535)) throws -> [[UInt32]] {
        try gif.withUnsafeBytes { bytes in
            let summary = try AnimationSummary(scanning: bytes, by: GIFReader.self, limits: limits)
            var reader = try GIFReader(bytes, limits: limits)
            var canvas = try Canvas(width: summary.width, height: summary.height, format: .rgba)
            var frames: [[UInt32]] = []
            while try reader.next(), let indices = try reader.readPixels() {
                _ = try canvas.draw(reader, indices)
                frames.append(canvas.withBytes { Array($0.bindMemory(to: UInt32.self)) })
            }
            return frames
        }
    }

    static func summary(_ gif: [UInt8], limits: MediaLimits = MediaLimits()) throws -> AnimationSummary {
        try gif.withUnsafeBytes { try AnimationSummary(scanning: $0, by: GIFReader.self, limits: limits) }
    }

    /// An opaque colour of ``GIFBuilder/palette`` as a word.
    static func color(_ index: Int) -> UInt32 {
        let color = GIFBuilder.palette[index]
        return UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16 | 0xff00_0000
    }

    static let clear: UInt32 = 0
    static let black: UInt32 = 0xff00_0000
}

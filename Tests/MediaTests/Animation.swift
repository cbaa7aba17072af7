import TestSupport

@testable import Media

/// Reads animations of any source format for the tests.
enum Animation {
    /// What a decoder makes of a file.
    struct Composed {
        /// The canvas after each frame: R, G, B, A, the first in the lowest byte.
        var canvases: [[UInt32]] = []
        /// The rectangles that `draw` returned.
        var changes: [Rectangle] = []
        let summary: AnimationSummary
    }

    static func compose(_ file: [UInt8], limits: MediaLimits = MediaLimits()) throws -> Composed {
        try file.withUnsafeBytes { bytes in
            switch SourceFormat(of: bytes) {
            case .gif: try compose(bytes, by: GIFReader.self, limits)
            case .apng: try compose(bytes, by: APNGReader.self, limits)
            case .webp: try compose(bytes, by: WebPReader.self, limits)
            case .mp4?, .mov?, .webm?, .avif?: try compose(bytes, by: ClipReader.self, limits)
            case nil: throw TranscodeError.notAnAnimation
            }
        }
    }

    private static func compose<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, _ limits: MediaLimits
    ) throws -> Composed {
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: limits)
        var composed = Composed(summary: summary)
        var reader = try Decoder(bytes, limits: limits)
        var canvas = try Canvas(width: summary.width, height: summary.height, format: .rgba)
        while try reader.next(), let pixels = try reader.readPixels() {
            composed.changes.append(try canvas.draw(reader, pixels))
            composed.canvases.append(canvas.withBytes { Array($0.bindMemory(to: UInt32.self)) })
        }
        return composed
    }
}

/// Colours as words R, G, B, A, the first in the lowest byte.
enum Word {
    static let clear: UInt32 = 0
    static let red: UInt32 = 0xff00_00ff
    static let green: UInt32 = 0xff00_ff00
    static let blue: UInt32 = 0xffff_0000
    static let black: UInt32 = 0xff00_0000
    static let white: UInt32 = 0xffff_ffff
    static let halfBlue: UInt32 = 0x80ff_0000
}

/// A decoder of one source format: reads an animation frame by frame.
///
/// The pipeline is generic over its decoder, so that per-frame calls cost nothing. The caller calls ``next()``, which reads the
/// header of a frame, and then either ``readPixels()`` or ``skipPixels()``. Memory must not grow with the number of frames. Not
/// thread-safe.
package protocol AnimationDecoder: ~Copyable, SendableMetatype {
    /// Opens the file and checks its canvas.
    ///
    /// - Parameter bytes: The whole file. It must stay valid for the decoder's lifetime.
    /// - Throws: ``TranscodeError``; `tooLarge` for a canvas over the limits.
    init(_ bytes: UnsafeRawBufferPointer, limits: MediaLimits) throws(TranscodeError)

    static var format: SourceFormat { get }
    /// Units per second of delays: a multiple of ``FrameClock/timescale``, so that hundredths are whole numbers of units.
    var timescale: Int { get }
    /// Whether delays are rounded to units of ``timescale``, so that frame times are off by up to half a unit.
    var hasRoundedDelays: Bool { get }
    /// Whether delays up to ten milliseconds are replaced, as browsers do for pictures.
    static var replacesShortDelays: Bool { get }
    /// The canvas in pixels. Known after the first call of ``next()``.
    var canvasSize: (width: Int, height: Int) { get }
    /// The repetitions after the first play, as stated by the part of the file read so far: nil for none, 0 for endless.
    var loopCount: Int? { get }
    /// How the file ended; nil before its end.
    var ending: AnimationEnding? { get }
    /// Bytes of image data decoded or skipped so far.
    var dataBytes: Int { get }
    /// The frame that ``next()`` last read.
    var frame: AnimationFrame { get }

    /// Reads the header of the next frame.
    ///
    /// - Returns: Whether there is a next frame. If false, ``ending`` is set.
    /// - Throws: ``TranscodeError``; `tooLarge` for a frame over the limits.
    mutating func next() throws(TranscodeError) -> Bool
    /// Skips the frame's pixels. Returns whether their data was complete.
    mutating func skipPixels() -> Bool
    /// Decodes the frame's pixels, which are valid until the next call. Returns nil if the file ends inside the frame.
    mutating func readPixels() throws(TranscodeError) -> FramePixels?
    /// The chroma siting of ``readPlanes()``; nil if frames can only be read as pixels.
    var siting: FramePlanes.Siting? { get }
    /// Decodes the frame, in place of ``readPixels()``, as planes that cover the canvas, or as colours if it has no planes.
    mutating func readPlanes() throws(TranscodeError) -> FramePixels?
    /// Calls `body` for each entry of the palette of the current frame, at most 256, in order. Decoders whose pixels are
    /// colours have no palette.
    func forEachPaletteColor(_ body: (_ index: Int, _ color: RGB) -> Void)
}

extension AnimationDecoder where Self: ~Copyable {
    package var hasRoundedDelays: Bool { false }
    package static var replacesShortDelays: Bool { true }
    package var siting: FramePlanes.Siting? { nil }
    package mutating func readPlanes() throws(TranscodeError) -> FramePixels? { nil }
    package func forEachPaletteColor(_ body: (_ index: Int, _ color: RGB) -> Void) {}
}

/// How the frames of a file end.
package enum AnimationEnding: Sendable {
    /// The file has its end marker.
    case complete
    /// After a whole frame, the file ends or continues with unreadable bytes, without its end marker. Some encoders write no
    /// marker, and browsers do not need it. In a file without frames, unreadable bytes are in the place of the first.
    case unmarked
    /// The file ends or becomes unreadable before or within a frame. The complete frames before that point are used.
    case brokenOff
}

/// The pixels of one frame.
package enum FramePixels {
    /// Palette indices, row by row in coded order; fewer than the frame's pixels if its data ends early.
    case indices(UnsafeBufferPointer<UInt8>)
    /// Bytes R, G, B, A in 32-bit words with straight alpha, rows from top to bottom; always the whole frame.
    case colors(UnsafeBufferPointer<UInt32>)
    /// Planes, from ``AnimationDecoder/readPlanes()`` only.
    case planes(FramePlanes)

    /// The number of pixels.
    package var count: Int {
        switch self {
        case .indices(let indices): indices.count
        case .colors(let colors): colors.count
        case .planes: 0
        }
    }
}

/// The chroma subsampling of planes.
enum ChromaFormat: Equatable {
    /// 4:2:0: a sample for each square of 2 × 2 pixels.
    case half
    /// 4:4:4: a sample for each pixel.
    case full

    /// The power of two by which chroma is smaller than luma in both dimensions.
    var shift: Int { self == .half ? 1 : 0 }
}

/// The planes of one picture in the layout of AVFrame: 8 bits, BT.709, limited range. In 4:2:0, an odd side of chroma is rounded
/// up.
package struct FramePlanes {
    /// The position of a chroma sample among its four pixels.
    package enum Siting: Sendable {
        /// Between two pixels of the left column.
        case left
        /// In the middle.
        case center
    }

    /// The alpha of a picture: 255 is opaque.
    struct Alpha {
        var samples: UnsafeMutablePointer<UInt8>
        /// Bytes from one row to the next.
        var stride: Int
    }

    var luma: UnsafeMutablePointer<UInt8>
    var cb: UnsafeMutablePointer<UInt8>
    var cr: UnsafeMutablePointer<UInt8>
    /// Bytes from one row to the next.
    var lumaStride: Int
    var cbStride: Int
    var crStride: Int
    var chroma = ChromaFormat.half
    /// The alpha plane, of the same size as luma; nil if every pixel is opaque.
    var alpha: Alpha?

    /// Returns the planes from a corner, whose coordinates are even.
    func from(x: Int, y: Int) -> FramePlanes {
        var part = self
        part.luma += y * lumaStride + x
        part.cb += (y >> chroma.shift) * cbStride + x >> chroma.shift
        part.cr += (y >> chroma.shift) * crStride + x >> chroma.shift
        return part
    }
}

/// The header of one frame of an animation.
package struct AnimationFrame: Sendable, Equatable {
    /// The treatment of the frame's rectangle before the next frame is drawn.
    package enum Disposal: UInt8, Sendable {
        case unspecified = 0
        case keep = 1
        /// The rectangle becomes transparent.
        case clear = 2
        /// The rectangle returns to its contents before the frame.
        case restore = 3
    }

    /// How a frame with alpha is drawn.
    package enum Blend: Sendable {
        /// The frame is composited over the canvas.
        case over
        /// Like ``over``, in the integer arithmetic of libwebp's animation decoder, which rounds down, as in Chromium.
        case overDown
        /// The frame replaces the canvas.
        case replace
    }

    /// The frame's rectangle, which may lie partly or wholly outside the canvas.
    package var rectangle: Rectangle
    /// Whether rows are coded in four passes (GIF89a Appendix E).
    package var isInterlaced = false
    /// The delay as coded, in units of the decoder's timescale. ``FrameClock`` computes the duration from it.
    package var delay: Int
    package var disposal: Disposal
    package var blend = Blend.over
    /// The palette index that leaves the canvas unchanged.
    package var transparentIndex: UInt8?
    /// Whether the frame's colours may have alpha.
    package var hasAlpha = false
    /// Whether the frame's pixels can be decoded independently of earlier frames.
    package var isSync = true
    package var hasLocalPalette = false
    /// Pixels per byte of uncompressed image data; 1 if a pixel takes a byte or more.
    package var pixelsPerByte = 1

    /// The number of pixels that counts for ``MediaLimits/pixelsPerByte``.
    var countedPixels: Int { (rectangle.width * rectangle.height + pixelsPerByte - 1) / pixelsPerByte }
    /// Whether the frame may leave pixels transparent.
    var mayBeTransparent: Bool { transparentIndex != nil || hasAlpha }
}

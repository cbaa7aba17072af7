/// The limits for one source. Each is checked before the work or the allocation that it limits.
package struct MediaLimits: Sendable, Equatable {
    /// Longest side of the canvas, in pixels.
    package var side = 4096
    /// Pixels of the canvas, and of any one frame.
    package var canvasPixels = 8_300_000
    /// Total pixels: the sum over the frames of the larger of canvas and frame.
    package var totalPixels = 1_000_000_000
    /// Pixels of all frames' own rectangles per byte of image data. Applies once their sum exceeds `canvasPixels`. An APNG with
    /// fewer than eight bits per pixel counts row bytes instead of pixels.
    ///
    /// LZW yields up to 1,500 pixels per byte, so half a megabyte can hold a thousand million of them. One blank frame is
    /// legitimate, so the first `canvasPixels` are free. Real GIFs stay below 100.
    package var pixelsPerByte = 1000
    /// Number of frames.
    package var frames = 5000
    /// Sum of the frames' delays as they are shown, in hundredths of a second. It is one day because many GIFs end with a delay of
    /// 65,535 hundredths, which means “stop here”.
    package var duration = 8_640_000
    /// Duration of a video clip, in hundredths of a second.
    package var clipDuration = 6000
    /// The accepted formats.
    package var formats = SourceFormats.all

    package static let standard = MediaLimits()

    /// The largest length of a result.
    package static let outputBytes = 256 << 20

    /// The limits for a format, which may code more pixels in a byte than a GIF.
    func adapted(to format: SourceFormat) -> MediaLimits {
        var limits = self
        let (product, overflow) = pixelsPerByte.multipliedReportingOverflow(by: format.traits.density)
        limits.pixelsPerByte = overflow ? .max : product
        return limits
    }

    /// The names of the limits in errors. The raw value crosses the process boundary.
    package enum Name: UInt8, Sendable {
        case side = 1
        case canvasPixels
        case totalPixels
        case frames
        case duration
        case pixelsPerByte
        case clipDuration
        case outputBytes

        /// Whether the value is a sum over the frames: reading ends at the frame that exceeds the limit.
        var isSum: Bool { [.totalPixels, .frames, .duration].contains(self) }

        /// The limit in words, with its unit.
        package var phrase: String {
            switch self {
            case .side: "longest side in pixels"
            case .canvasPixels: "number of pixels of one frame"
            case .totalPixels: "number of pixels of all frames together"
            case .frames: "number of frames"
            case .duration: "duration in hundredths of a second"
            case .pixelsPerByte: "number of pixels per byte of image data"
            case .clipDuration: "duration of the clip in hundredths of a second"
            case .outputBytes: "least number of bytes of the result"
            }
        }
    }

    /// Checks the longer side and the pixels of a canvas.
    func check(width: Int, height: Int) throws(TranscodeError) {
        try check(.side, max(width, height))
        try check(.canvasPixels, width * height)
    }

    /// Throws ``TranscodeError/tooLarge(_:value:maximum:)`` when `value` exceeds the limit called `name`.
    func check(_ name: Name, _ value: Int) throws(TranscodeError) {
        let maximum =
            switch name {
            case .side: side
            case .canvasPixels: canvasPixels
            case .totalPixels: totalPixels
            case .frames: frames
            case .duration: duration
            case .pixelsPerByte: pixelsPerByte
            case .clipDuration: clipDuration
            case .outputBytes: Self.outputBytes
            }
        if value > maximum { throw .tooLarge(name, value: value, maximum: maximum) }
    }
}

/// The facts of an animation that are known without decoding pixels.
package struct AnimationSummary: Sendable, Equatable {
    /// The canvas, in pixels.
    package var width = 0
    package var height = 0
    /// Units per second of the delays.
    package var timescale = FrameClock.timescale
    /// Whether the delays are rounded to units of ``timescale``.
    package var hasRoundedDelays = false
    /// Whether delays that browsers ignore are replaced.
    private var replacesShortDelays = true
    /// The delays of the frames as coded.
    package var delays: [Int] = []
    /// The indices of frames that cannot be decoded without the frames before them.
    var dependentFrames: Set<Int> = []
    /// The repetitions after the first play: nil for none, 0 for endless.
    package var loopCount: Int?
    /// Whether some frame is coded with alpha or a transparent index.
    package var hasAlpha = false
    /// Whether some frame has alpha or a transparent index, or leaves part of the canvas untouched or cleared.
    package var hasTransparency = false
    /// Whether every frame covers the whole canvas, so that it can be composed without the frames before it.
    package var hasWholeFrames = true
    /// How the file ends.
    package var ending = AnimationEnding.complete

    /// Reads all frames without decoding them, and checks each against the limits.
    ///
    /// - Throws: ``TranscodeError``; `incomplete` or `corrupt` for a file without frames or with only empty frames.
    package init<Decoder: AnimationDecoder & ~Copyable>(
        scanning bytes: UnsafeRawBufferPointer, by _: Decoder.Type, limits: MediaLimits
    ) throws(TranscodeError) {
        let limits = limits.adapted(to: Decoder.format)
        var decoder = try Decoder(bytes, limits: limits)
        timescale = decoder.timescale
        hasRoundedDelays = decoder.hasRoundedDelays
        replacesShortDelays = Decoder.replacesShortDelays
        var pixels = 0
        var density = PixelDensity()
        var duration = 0
        /// Units per hundredth of a second.
        let unit = timescale / FrameClock.timescale
        while try decoder.next() {
            let frame = decoder.frame
            if delays.isEmpty {
                (width, height) = decoder.canvasSize
                try limits.check(width: width, height: height)
                hasTransparency = frame.rectangle != Rectangle(x: 0, y: 0, width: width, height: height)
            }
            let visible = frame.rectangle.clipped(toWidth: width, height: height)
            if visible.width < width || visible.height < height || frame.mayBeTransparent || frame.disposal == .restore {
                hasWholeFrames = false
            }
            if frame.mayBeTransparent { hasAlpha = true }
            // Restoring before the first frame clears the canvas. Later frames restore pixels that were already examined.
            let isCleared = frame.disposal == .clear || (delays.isEmpty && frame.disposal == .restore)
            if frame.mayBeTransparent || isCleared { hasTransparency = true }
            try limits.check(.frames, delays.count + 1)
            if !frame.isSync { dependentFrames.insert(delays.count) }
            try delays.grow(by: frame.delay)
            density.add(frame)
            pixels += max(width * height, frame.rectangle.width * frame.rectangle.height)
            try limits.check(.totalPixels, pixels)
            duration += shownDelay(frame.delay)
            try limits.check(.duration, (duration + unit - 1) / unit)
            _ = decoder.skipPixels()
        }
        loopCount = decoder.loopCount
        ending = decoder.ending ?? .brokenOff
        if delays.isEmpty { throw Decoder.errorWithoutFrames(ending) }
        if width == 0 || height == 0 { throw .corrupt(Decoder.format, .noCanvas) }
        if density.isEmpty { throw .corrupt(Decoder.format, .emptyFrames) }
        // Checked at the end, because a film may begin with a few blank frames.
        try density.check(limits, dataBytes: decoder.dataBytes)
    }

    var clock: FrameClock { FrameClock(timescale: timescale, replacesShortDelays: replacesShortDelays) }

    /// Returns the duration of a frame with the given coded delay.
    func shownDelay(_ delay: Int) -> Int {
        replacesShortDelays ? FrameClock.shownDelay(delay, timescale: timescale) : delay
    }
}

extension AnimationDecoder where Self: ~Copyable {
    /// Returns the error for a file that ends before its first frame.
    static func errorWithoutFrames(_ ending: AnimationEnding?) -> TranscodeError {
        ending == .brokenOff ? .incomplete(format) : .corrupt(format, .noFrames)
    }
}

/// The sum of the pixels of all frames, which is checked against the bytes that encode them.
struct PixelDensity {
    private var codedPixels = 0

    mutating func add(_ frame: AnimationFrame) {
        codedPixels += frame.countedPixels
    }

    /// Whether no frame has a pixel.
    var isEmpty: Bool { codedPixels == 0 }

    /// - Throws: ``TranscodeError/tooLarge(_:value:maximum:)`` for ``MediaLimits/pixelsPerByte``.
    func check(_ limits: MediaLimits, dataBytes: Int) throws(TranscodeError) {
        if codedPixels > limits.canvasPixels {
            try limits.check(.pixelsPerByte, codedPixels / max(1, dataBytes))
        }
    }
}

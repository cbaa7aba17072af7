/// The limits that Telegram publishes for video stickers (https://core.telegram.org/stickers/webm-vp9-encoding): VP9 in WebM
/// without sound, one side of exactly 512 pixels and the other no longer, at most 3 seconds, 30 frames per second and 256 KB.
///
/// The animation is scaled; pixel art of up to half the size is enlarged by a whole number, with a transparent margin for the
/// rest. The end is cut off, frames that exceed the rate are dropped, and the quality is lowered until the file is small enough.
struct StickerRules {
    /// In hundredths of a second.
    private static let duration = 300
    /// In thousandths of frames per second.
    private static let rate = 30_000
    /// Telegram does not say whether KB means 1000 or 1024 bytes; 1000 satisfies both.
    static let bytes = 256_000

    /// The options of the next attempt.
    private(set) var options: TranscodeOptions
    /// The quality level of the next attempt; higher is coarser.
    var level: Int

    /// - Parameter level: The quality level of the first attempt.
    init(_ options: TranscodeOptions, level: Int) {
        self.options = options
        self.level = level
        self.options.time.ceiling = min(options.time.ceiling ?? Self.rate, Self.rate)
        // In the source's time, rounded down.
        let longest = max(1, Self.duration * options.time.speed / TimeOptions.thousand)
        self.options.time.end = min(options.time.end ?? .max, options.time.start + longest)
    }

    /// Enlarges each pixel of a canvas to the largest square that fits.
    mutating func enlargePixels(longerSide: Int) {
        options.zoom = max(1, (options.preset?.longerSide ?? 0) / longerSide)
    }

    /// Chooses a coarser attempt after a file of `bytes`; beyond the coarsest level, halves the frame rate.
    ///
    /// - Returns: False if the file is small enough, or nothing can make it smaller.
    mutating func adjust(after bytes: Int) -> Bool {
        guard bytes > Self.bytes else { return false }
        if level < VP9Settings.coarsestLevel {
            // Ten levels roughly halve the bytes; one more compensates for the inaccuracy.
            let excess = Double(bytes) / Double(Self.bytes)
            level = min(VP9Settings.coarsestLevel, level + 1 + Int((10 * PortableMath.log2(excess)).rounded(.up)))
            return true
        }
        let ceiling = options.time.ceiling ?? Self.rate
        options.time.ceiling = ceiling / 2
        return ceiling >= 2 * TimeOptions.thousand
    }
}

/// How often players show an animation.
enum PlayCount {
    /// The number of times that the video of a GIF plays.
    ///
    /// - Parameters:
    ///   - loopCount: The GIF's loop count n: n repetitions after the first play, as in Chromium and WebKit. Nil means one play,
    ///     0 an endless loop.
    ///   - repetitions: The number of times that the video contains the animation.
    /// - Returns: At least 1; nil for an endless loop.
    static func of(loopCount: Int?, repetitions: Int) -> Int? {
        guard let loopCount else { return 1 }
        return loopCount == 0 ? nil : (loopCount + 1 + repetitions - 1) / repetitions
    }
}

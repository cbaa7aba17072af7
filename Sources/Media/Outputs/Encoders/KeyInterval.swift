/// The keyframe interval, chosen by the cost of a seek.
///
/// A player that seeks decodes everything from the previous keyframe. A keyframe in the middle costs a drawing up to two fifths
/// of its bytes, and players of short loops hardly seek. So the interval is bounded by the number of decoded pixels. Unchanged
/// blocks count less, because decoders copy them.
struct KeyInterval: Equatable {
    /// The largest number of pictures from one keyframe to the next.
    let pictures: Int

    /// The smallest interval, which is x264's default.
    private static let fewest = 250
    /// The largest interval: the most pictures that a service usually allows in an animation.
    private static let most = 9999
    /// The pixels of an interval: about a second for a single-threaded decoder.
    private static let mostPixels = 200_000_000.0
    /// The cost of an unchanged pixel, where a changed one costs 1.
    private static let unchanged = 0.125

    /// - Parameter pixels: The pixels of one picture, at least 1.
    init(pixels: Int, changedShare: Double) {
        let cost = Double(pixels) * (changedShare + (1 - changedShare) * Self.unchanged)
        pictures = Int(min(Double(Self.most), max(Double(Self.fewest), Self.mostPixels / cost)))
    }
}

/// The pictures from one key picture to the next, chosen by what a seek costs.
///
/// A player that seeks decodes everything from the key picture before. A key picture in the middle costs a drawing up to two fifths of its
/// bytes, and players of short loops hardly seek. So the interval is bounded by the pixels that are decoded, and blocks that do not change
/// count less: decoders copy them.
struct KeyInterval: Equatable {
    /// The largest number of pictures from one key picture to the next.
    let pictures: Int

    /// The fewest, and x264's default.
    private static let fewest = 250
    /// The most pictures of an animation that the limits of a service usually allow.
    private static let most = 9999
    /// Pixels from one key picture to the next: about a second of a decoder without threads.
    private static let mostPixels = 200_000_000.0
    /// The cost of an unchanged pixel, where a changed one costs 1.
    private static let unchanged = 0.125

    /// - Parameters:
    ///   - pixels: Of one picture, at least 1.
    ///   - changedShare: See ``PictureContent/changedShare``.
    init(pixels: Int, changedShare: Double) {
        let cost = Double(pixels) * (changedShare + (1 - changedShare) * Self.unchanged)
        pictures = Int(min(Double(Self.most), max(Double(Self.fewest), Self.mostPixels / cost)))
    }
}

/// `acTL`: the frame and play counts of an animated PNG (PNG third edition §11.3.6.1).
struct APNGAnimation {
    /// At least 1.
    let frames: Int
    /// The number of plays; 0 for endless.
    let plays: Int

    private static let length = 8

    /// Reads a chunk. Nil for a chunk that browsers ignore, so that the PNG is a still picture.
    init?(_ chunk: PNGChunk) {
        guard chunk.type == PNGChunk.animation, chunk.data.count == Self.length, chunk.isSound else { return nil }
        frames = chunk.number(at: 0)
        plays = chunk.number(at: 4)
        guard frames > 0, max(frames, plays) < 1 << 31 else { return nil }
    }
}

/// `fcTL`: the rectangle, delay, disposal and blending of one frame (§11.3.6.2).
struct APNGControl {
    let sequence: Int
    let rectangle: Rectangle
    /// The delay as a fraction of a second.
    let delay: (numerator: Int, denominator: Int)
    let disposal: AnimationFrame.Disposal
    let blend: AnimationFrame.Blend

    private static let length = 26

    /// Reads a chunk. Nil for a chunk of another type or length, or with an unknown operation.
    init?(_ chunk: PNGChunk) {
        guard chunk.type == PNGChunk.control, chunk.data.count == Self.length else { return nil }
        sequence = chunk.number(at: 0)
        rectangle = Rectangle(
            x: chunk.number(at: 12), y: chunk.number(at: 16), width: chunk.number(at: 4), height: chunk.number(at: 8))
        // A denominator of 0 means hundredths.
        let denominator = chunk.shortNumber(at: 22)
        delay = (chunk.shortNumber(at: 20), denominator == 0 ? 100 : denominator)
        switch chunk.data[24] {
        case 0: disposal = .keep
        case 1: disposal = .clear
        case 2: disposal = .restore
        default: return nil
        }
        switch chunk.data[25] {
        case 0: blend = .replace
        case 1: blend = .over
        default: return nil
        }
    }
}

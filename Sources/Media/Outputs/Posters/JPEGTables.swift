/// JPEG's quantization tables for a quality: those of ITU-T T.81 Annex K.1, scaled as in the Independent JPEG Group's library.
struct JPEGTables: Sendable, Equatable {
    /// From this quality on chroma has the full resolution.
    static let fullChromaQuality = 90
    /// The encoder divides tables times scale by this.
    static let unitScale: Int32 = 8

    /// Row by row, in the order of a block's coefficients.
    let luma: [UInt16]
    let chroma: [UInt16]

    /// - Parameter quality: The option, 1…100; see ``PosterQuality/jpeg(_:)``.
    init(quality: Int) {
        let quality = PosterQuality.jpeg(quality)
        let percent = quality < 50 ? 5000 / quality : 200 - 2 * quality
        luma = Self.annexKLuma.map { Self.scaled($0, percent) }
        chroma = Self.annexKChroma.map { Self.scaled($0, percent) }
    }

    private static func scaled(_ value: Int, _ percent: Int) -> UInt16 {
        UInt16(min(255, max(1, (value * percent + 50) / 100)))
    }

    /// Table K.1.
    private static let annexKLuma = [
        16, 11, 10, 16, 24, 40, 51, 61,
        12, 12, 14, 19, 26, 58, 60, 55,
        14, 13, 16, 24, 40, 57, 69, 56,
        14, 17, 22, 29, 51, 87, 80, 62,
        18, 22, 37, 56, 68, 109, 103, 77,
        24, 35, 55, 64, 81, 104, 113, 92,
        49, 64, 78, 87, 103, 121, 120, 101,
        72, 92, 95, 98, 112, 100, 103, 99,
    ]

    /// Table K.2.
    private static let annexKChroma = [
        17, 18, 24, 47, 99, 99, 99, 99,
        18, 21, 26, 66, 99, 99, 99, 99,
        24, 26, 56, 99, 99, 99, 99, 99,
        47, 66, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
        99, 99, 99, 99, 99, 99, 99, 99,
    ]
}

/// Maps the option `quality`, 1…100, to the encoders' qualities: two straight lines that meet at the default, which looks as good as
/// the video's.
enum PosterQuality {
    /// JPEG's quality: 60 ↦ 82, 1 ↦ 10, 100 ↦ 98.
    static func jpeg(_ quality: Int) -> Int { line(quality, lowest: 10, middle: 82, highest: 98) }

    /// WebP's quality: 60 ↦ 80, 1 ↦ 5, 100 ↦ 100.
    static func webp(_ quality: Int) -> Int { line(quality, lowest: 5, middle: 80, highest: 100) }

    private static func line(_ quality: Int, lowest: Int, middle: Int, highest: Int) -> Int {
        quality <= 60
            ? lowest + (middle - lowest) * (quality - 1) / 59
            : middle + (highest - middle) * (quality - 60) / 40
    }
}

/// The level of a VP9 stream: the capabilities that a decoder needs (WebM project, VP9 Levels).
struct VP9Level: Equatable {
    /// The level times ten: 31 is level 3.1.
    let number: Int
    /// Luma samples per second.
    private let rate: Int
    /// Luma samples of one picture.
    private let picture: Int
    /// Samples of the longer side.
    private let side: Int
    /// Kilobits per second, over the whole stream.
    private let bits: Int
    /// Kilobits of ``VP9Load/window`` pictures in sequence (`Max CPB Size`).
    private let buffer: Int

    /// Returns the lowest level for a stream.
    ///
    /// - Parameter width: In pixels, within ``FactRange/side``, like the height.
    /// - Returns: The highest level if the stream exceeds all levels.
    static func of(width: Int, height: Int, _ load: VP9Load) -> VP9Level {
        let samples = width * height
        let rate = samples * VP9Load.nanosecondsPerSecond / load.shortest
        return all.first {
            rate <= $0.rate && samples <= $0.picture && max(width, height) <= $0.side && load.bitsPerSecond <= 1000 * $0.bits
                && load.mostBits <= 1000 * $0.buffer
        } ?? highest
    }

    /// Buffers above level 5.1 are not specified.
    private static let unlimited = Int.max / 1000
    private static let highest = VP9Level(
        number: 62, rate: 4_706_009_088, picture: 35_651_584, side: 16_832, bits: 480_000, buffer: unlimited)

    private static let all = [
        VP9Level(number: 10, rate: 829_440, picture: 36_864, side: 512, bits: 200, buffer: 400),
        VP9Level(number: 11, rate: 2_764_800, picture: 73_728, side: 768, bits: 800, buffer: 1000),
        VP9Level(number: 20, rate: 4_608_000, picture: 122_880, side: 960, bits: 1800, buffer: 1500),
        VP9Level(number: 21, rate: 9_216_000, picture: 245_760, side: 1344, bits: 3600, buffer: 2800),
        VP9Level(number: 30, rate: 20_736_000, picture: 552_960, side: 2048, bits: 7200, buffer: 6000),
        VP9Level(number: 31, rate: 36_864_000, picture: 983_040, side: 2752, bits: 12_000, buffer: 10_000),
        VP9Level(number: 40, rate: 83_558_400, picture: 2_228_224, side: 4160, bits: 18_000, buffer: 16_000),
        VP9Level(number: 41, rate: 160_432_128, picture: 2_228_224, side: 4160, bits: 30_000, buffer: 18_000),
        VP9Level(number: 50, rate: 311_951_360, picture: 8_912_896, side: 8384, bits: 60_000, buffer: 36_000),
        VP9Level(number: 51, rate: 588_251_136, picture: 8_912_896, side: 8384, bits: 120_000, buffer: 46_000),
        VP9Level(number: 52, rate: 1_176_502_272, picture: 8_912_896, side: 8384, bits: 180_000, buffer: unlimited),
        VP9Level(number: 60, rate: 1_176_502_272, picture: 35_651_584, side: 16_832, bits: 180_000, buffer: unlimited),
        VP9Level(number: 61, rate: 2_353_004_544, picture: 35_651_584, side: 16_832, bits: 240_000, buffer: unlimited),
        highest,
    ]
}

/// What the pictures of a VP9 stream demand of a decoder.
struct VP9Load {
    /// Pictures in sequence whose bytes count for the buffer.
    static let window = 4
    static let nanosecondsPerSecond = 1_000_000_000

    /// The shortest time for which a picture is shown, in nanoseconds, at least 1.
    var shortest: Int
    var bitsPerSecond = 0
    /// The most bits of ``window`` pictures.
    var mostBits = 0
}

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

    private static let nanosecondsPerSecond = 1_000_000_000

    /// Returns the lowest level for a stream.
    ///
    /// - Parameters:
    ///   - width: In pixels, within ``FactRange/side``.
    ///   - shortest: The shortest time for which a picture is shown, in nanoseconds, at least 1.
    /// - Returns: The highest level if the stream exceeds all levels.
    static func of(width: Int, height: Int, shortest: Int) -> VP9Level {
        let samples = width * height
        let rate = samples * nanosecondsPerSecond / shortest
        return all.first { rate <= $0.rate && samples <= $0.picture && max(width, height) <= $0.side } ?? highest
    }

    private static let highest = VP9Level(number: 62, rate: 4_706_009_088, picture: 35_651_584, side: 16_832)

    private static let all = [
        VP9Level(number: 10, rate: 829_440, picture: 36_864, side: 512),
        VP9Level(number: 11, rate: 2_764_800, picture: 73_728, side: 768),
        VP9Level(number: 20, rate: 4_608_000, picture: 122_880, side: 960),
        VP9Level(number: 21, rate: 9_216_000, picture: 245_760, side: 1344),
        VP9Level(number: 30, rate: 20_736_000, picture: 552_960, side: 2048),
        VP9Level(number: 31, rate: 36_864_000, picture: 983_040, side: 2752),
        VP9Level(number: 40, rate: 83_558_400, picture: 2_228_224, side: 4160),
        VP9Level(number: 41, rate: 160_432_128, picture: 2_228_224, side: 4160),
        VP9Level(number: 50, rate: 311_951_360, picture: 8_912_896, side: 8384),
        VP9Level(number: 51, rate: 588_251_136, picture: 8_912_896, side: 8384),
        VP9Level(number: 52, rate: 1_176_502_272, picture: 8_912_896, side: 8384),
        VP9Level(number: 60, rate: 1_176_502_272, picture: 35_651_584, side: 16_832),
        VP9Level(number: 61, rate: 2_353_004_544, picture: 35_651_584, side: 16_832),
        highest,
    ]
}

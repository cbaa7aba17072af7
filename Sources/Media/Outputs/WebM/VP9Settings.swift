/// The settings of libvpx's VP9 encoder. `docs/benchmarks.md` has the measurements behind them.
enum VP9Settings {
    /// The encoder's name in libavcodec.
    static let encoder = "libvpx-vp9"
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "vp9-1"
    /// Pictures between two from which a player can start.
    static let keyInterval = 250

    /// The constant quality level for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 32. Lower is better and
    /// larger: 100 ↦ 12, 1 ↦ 61.
    static func level(quality: Int) -> Int {
        quality >= 60 ? 32 - (quality - 60) / 2 : 32 + (60 - quality) / 2
    }

    static let coarsestLevel = 63

    /// The encoder of one plane.
    static func stream(
        _ plane: PlaneEncoder.Plane, width: Int, height: Int, level: Int
    ) -> PlaneEncoder.Stream {
        PlaneEncoder.Stream(
            encoder: encoder, output: .webm, width: width, height: height, plane: plane, rate: 30,
            keyInterval: keyInterval,
            options: [
                ("deadline", "good"), ("cpu-used", "2"), ("crf", String(level)), ("auto-alt-ref", "1"), ("row-mt", "0"),
                ("tile-columns", "0"), ("lag-in-frames", String(lookahead(pixels: width * height))),
            ])
    }

    /// Pictures that the encoder sees ahead, so that a job with alpha stays within its memory. It follows from the size alone: the
    /// load of the machine must not affect the bytes.
    static func lookahead(pixels: Int) -> Int {
        min(25, max(0, 12_000_000 / pixels))
    }
}

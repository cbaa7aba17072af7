/// The settings of libaom for image sequences. `docs/benchmarks.md` has the measurements behind them.
enum AVIFSettings {
    /// The encoder's name in libavcodec.
    static let encoder = "libaom-av1"
    /// The version that becomes part of an object's name. Change it with anything that changes the output bytes.
    static let version = "avif-1"
    /// Pictures between two from which a reader can start.
    private static let keyInterval = 250

    /// The constant quality level for `quality` 1…100: two straight lines that meet at the default, 60 ↦ 38. Lower is better and
    /// larger: 100 ↦ 12, 1 ↦ 61.
    static func level(quality: Int) -> Int {
        quality >= 60 ? 38 - (quality - 60) * 13 / 20 : 38 + (60 - quality) * 2 / 5
    }

    /// The encoder of one plane.
    ///
    /// Alpha of GIFs has two values and sharp edges, for which the tools for screen content halve the bytes. GIFs with transparent
    /// pixels are drawings, whose colours these tools save a tenth of.
    static func stream(
        _ plane: PlaneEncoder.Plane, width: Int, height: Int, level: Int, hasAlpha: Bool
    ) -> PlaneEncoder.Stream {
        PlaneEncoder.Stream(
            encoder: encoder, output: .avif, width: width, height: height, plane: plane, transfer: .sRGB, rate: 30,
            keyInterval: keyInterval,
            options: [
                ("usage", "good"), ("cpu-used", "6"), ("crf", String(level)), ("row-mt", "0"), ("tiles", "1x1"),
                ("lag-in-frames", String(lookahead(pixels: width * height))),
            ] + (hasAlpha ? [("aom-params", "tune-content=screen")] : []))
    }

    /// Pictures that the encoder sees ahead, so that a job with alpha stays within its memory. It follows from the size alone: the
    /// load of the machine must not affect the bytes.
    static func lookahead(pixels: Int) -> Int {
        min(19, max(0, 12_000_000 / pixels))
    }
}

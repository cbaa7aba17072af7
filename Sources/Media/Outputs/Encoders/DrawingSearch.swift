/// How far, and in how many pictures, x264 looks for the blocks of a drawing.
///
/// Parts of drawings move far from one picture to the next (a page scrolls, a window opens) and return after some pictures, but
/// x264 pays for each pixel of the range and each picture wherever a block has changed. Where frames change little of the
/// canvas, a wide search in many pictures is cheap. `docs/benchmarks.md` has the measurements.
struct DrawingSearch: Equatable {
    /// The distance to each side, in pixels. Farther searches find little more, and a shorter one misses panels that slide in.
    static let range = 64
    /// Pictures that a block may be copied from. More of them raise the level of the stream and the memory of its decoder.
    let references: Int

    /// The largest part of the canvas, on average, that counts as little.
    private static let littleChange = 0.3
    private static let manyReferences = 6
    /// The number of references in the preset.
    private static let fewReferences = 3
    /// The macroblocks of all references that level 4.0 allows (`MaxDpbMbs` of ITU-T H.264 table A-1). Fewer devices decode higher
    /// levels.
    private static let mostReferenceMacroblocks = 32_768

    /// - Parameters:
    ///   - width: Of the video, in pixels; as the height.
    ///   - changedShare: ``AnimationSummary/changedShare``.
    init(width: Int, height: Int, changedShare: Double) {
        let changesLittle = changedShare <= Self.littleChange
        let macroblocks = (width + 15) / 16 * ((height + 15) / 16)
        references =
            changesLittle && macroblocks * Self.manyReferences <= Self.mostReferenceMacroblocks
            ? Self.manyReferences : Self.fewReferences
    }

    /// In x264's syntax, with a leading colon.
    var options: String { ":me=umh:merange=\(Self.range):ref=\(references)" }
}

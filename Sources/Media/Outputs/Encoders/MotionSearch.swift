/// The range, precision and references of x264's motion search.
///
/// Parts of drawings move far from one picture to the next (a page scrolls, a window opens) and return after some pictures. But
/// x264 pays for each pixel of the range and each reference wherever a block has changed. Where frames change little of the
/// canvas, many references are cheap. Where much comes from far away, the widest search pays off, even in films. Long motion is
/// usually in whole pixels, so a wide search spends little on subpixels.
/// `docs/benchmarks.md` has the measurements.
struct MotionSearch: Equatable {
    /// The range to each side in pixels; nil for the preset's short search, which refines subpixels.
    let range: Int?
    /// The number of reference pictures. More references raise the level of the stream and the memory of its decoder.
    let references: Int
    /// Whether the search is fine and uses all references. With few changed pixels, this takes some hundredths of a second.
    let isThorough: Bool

    /// The largest mean share of changed pixels that counts as little.
    private static let littleChange = 0.3
    /// The smallest ``PictureContent/farShare`` that counts as much.
    private static let muchFarMotion = 0.2
    private static let wideRange = 112
    /// Farther searches find little more in most drawings, and a shorter one misses panels that slide in.
    private static let drawingRange = 64
    private static let manyReferences = 6
    private static let allReferences = 12
    /// The number of references, and the range, of the preset.
    private static let fewReferences = 3
    private static let presetRange = 16
    /// The most changed pixels, summed over all frames, for a thorough search.
    private static let mostThoroughPixels = 100_000.0
    /// The macroblocks that level 4.0 allows for all references (`MaxDpbMbs` of ITU-T H.264 table A-1). Fewer devices decode
    /// higher levels.
    private static let mostReferenceMacroblocks = 32_768

    /// - Parameter width: The width of the video in pixels, like `height`.
    init(width: Int, height: Int, _ content: PictureContent) {
        let isFar = content.farShare >= Self.muchFarMotion
        let changesLittle = content.changedShare <= Self.littleChange
        let hasManyReferences = isFar || (content.isDrawing && changesLittle)
        let macroblocks = (width + 15) / 16 * ((height + 15) / 16)
        let looksFar = content.isDrawing && (content.isPixelArt || changesLittle)
        range = isFar ? Self.wideRange : looksFar ? Self.drawingRange : nil
        isThorough = content.changedPixels(ofPictures: width * height) <= Self.mostThoroughPixels
        if isThorough {
            // So few pixels are far from the limit of any level.
            references = min(Self.allReferences, max(Self.fewReferences, content.frames))
        } else {
            let areAllowed = macroblocks * Self.manyReferences <= Self.mostReferenceMacroblocks
            references = hasManyReferences && areAllowed ? Self.manyReferences : Self.fewReferences
        }
    }

    /// In x264's syntax, with a leading colon.
    var options: String {
        if isThorough { return ":subme=7:trellis=1:me=umh:merange=\(range ?? Self.presetRange):ref=\(references)" }
        return range.map { ":subme=2:me=umh:merange=\($0):ref=\(references)" } ?? ":subme=6"
    }

    /// Whether the search is fine enough for the smallest partitions to pay off.
    var isFine: Bool { isThorough || range == nil }
}

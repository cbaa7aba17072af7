/// Removes palette dither from a canvas.
///
/// A palette limits a film's colours, and dither hides this with a fine pattern, which is not part of the film and costs a
/// video many bytes. ``DitherProbe`` detects dither; without it, the canvas stays unchanged. A pixel changes by at most what
/// the distance of its colour to its neighbours in the palette explains. Not thread-safe.
final class Undither {
    /// The canvas without dither, in the format of the canvas.
    let output: Canvas

    /// Whether any picture so far had dither.
    private(set) var hasRemovedDither = false

    private(set) var reach: PaletteReach
    private var probe = DitherProbe()
    /// The strength of the dither removed from ``output``; nil if it is a copy.
    private var strength: DitherStrength?
    private let remover: DitherRemover
    /// Blocks begin at multiples of this number of pixels: every second cell.
    private static let grid = 2 * DitherRemover.cell
    /// Pixels around a change that depend on it, because they share a block with it.
    private static let margin = grid

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        output = try Canvas(width: width, height: height, format: format)
        reach = try PaletteReach(format)
        remover = try DitherRemover(width: width)
    }

    /// Whether the last picture had dither on a film without visible noise of its own.
    var removesFilmDither: Bool { probe.isFilmDither }

    /// The dither found in the last picture.
    var evidence: DitherEvidence { probe.evidence }

    /// Enters the palette of the drawn frame. Must be called for all frames, in order.
    func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) {
        reach.enter(decoder)
    }

    /// Writes a changed canvas to ``output``.
    ///
    /// - Parameter area: Contains all changes since the previous call; the whole canvas in the first call.
    /// - Returns: A rectangle that contains all changes of the output.
    func update(_ canvas: borrowing Canvas, _ area: Rectangle) -> Rectangle {
        guard !area.isEmpty else { return area }
        let whole = Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height)
        probe.look(at: canvas, reach)
        let isSame = probe.kind == strength?.kind
        if !isSame { strength = probe.kind.map { DitherStrength($0) } }
        guard let strength else {
            let changed = isSame ? area : whole
            output.copy(canvas, changed)
            return changed
        }
        hasRemovedDither = true
        let changed = isSame ? area.expanded(by: Self.margin).clipped(toWidth: canvas.width, height: canvas.height) : whole
        let (x, y) = (changed.x & -Self.grid, changed.y & -Self.grid)
        let region = Rectangle(x: x, y: y, width: changed.maxX - x, height: changed.maxY - y)
        // The removed dither is subtracted from the copy.
        output.copy(canvas, region)
        filter(canvas, region, strength)
        return region
    }

    /// Removes the dither in a part of the canvas, whose corner lies on the grid.
    ///
    /// For Y'CbCr, filters only luma: means of 2 × 2 chroma samples have almost no dither, and filtering would harm the film
    /// more.
    private func filter(_ canvas: borrowing Canvas, _ region: Rectangle, _ strength: DitherStrength) {
        let shifts: [UInt32] = if case .yuv = canvas.format { [0] } else { [0, 8, 16] }
        let planes = shifts.map { DitheredPlane(canvas, output, shift: $0) }
        let cell = DitherRemover.cell
        remover.begin(width: region.width)
        for top in stride(from: region.y, to: region.maxY, by: cell * DitherRemover.bandCells) {
            let height = min(region.maxY - top, cell * DitherRemover.bandCells)
            let cells = (height + cell - 1) / cell
            for row in -1...cells {
                remover.clearReach(row: row)
                for y in row * cell..<(row + 1) * cell {
                    Self.loadReach(planes[0], x: region.x, y: top + y, into: remover.reachRow(row), remover, reach)
                }
            }
            for plane in planes {
                for y in -cell..<(cells + 1) * cell {
                    Self.loadSamples(plane, x: region.x, y: top + y, into: remover.sampleRow(y), remover)
                }
                remover.run(rows: cells, strength)
                for y in 0..<height {
                    plane.store(
                        remover.removedRow(y), remover.reachRow(y / cell), x: region.x, y: top + y, count: region.width)
                }
            }
        }
    }

    /// Reads a row of a band with its border. Rows and columns beyond the plane repeat its edges.
    private static func loadSamples(
        _ plane: DitheredPlane, x left: Int, y: Int, into samples: UnsafeMutablePointer<Int16>, _ remover: DitherRemover
    ) {
        let columns = columns(of: plane, x: left, remover)
        let inside = columns.inside
        plane.read(
            x: left + inside.lowerBound, y: min(max(y, 0), plane.height - 1), count: inside.count,
            into: samples + inside.lowerBound)
        for x in columns.all.lowerBound..<inside.lowerBound { samples[x] = samples[inside.lowerBound] }
        for x in inside.upperBound..<columns.all.upperBound { samples[x] = samples[inside.upperBound - 1] }
    }

    /// Adds the reach of a row's colours to the sums of its cells.
    ///
    /// Samples one pixel in four, in a different column in each row, so that each phase of a threshold matrix counts once per
    /// cell.
    private static func loadReach(
        _ plane: DitheredPlane, x left: Int, y: Int, into cells: UnsafeMutablePointer<Int32>, _ remover: DitherRemover,
        _ reach: borrowing PaletteReach
    ) {
        let inside = columns(of: plane, x: left, remover).inside
        let words = plane.words(y: min(max(y, 0), plane.height - 1)) + left
        let cell = DitherRemover.cell
        let place = [0, 2, 1, 3][y & 3]
        for column in -1...remover.columns {
            let x = min(max(column &* cell &+ place, inside.lowerBound), inside.upperBound &- 1)
            cells[column] &+= 4 &* reach.lookUp(words[x])
        }
    }

    /// Returns the columns of a band with its border, counted from `left`, and those inside the plane.
    private static func columns(
        of plane: DitheredPlane, x left: Int, _ remover: DitherRemover
    ) -> (all: Range<Int>, inside: Range<Int>) {
        let all = -DitherRemover.cell..<(remover.columns + 1) * DitherRemover.cell
        return (all, all.clamped(to: -left..<plane.width - left))
    }
}

extension Rectangle {
    fileprivate func expanded(by border: Int) -> Rectangle {
        Rectangle(x: x - border, y: y - border, width: width + 2 * border, height: height + 2 * border)
    }
}

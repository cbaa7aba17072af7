/// Takes the dither of palettes out of a canvas.
///
/// A palette forces its colours on a film, and dither hides that by a fine pattern, which is not in the film and costs a video many
/// bytes. ``DitherProbe`` finds out whether there is dither; without it, the canvas stays as it is. A pixel moves only as far as the
/// distance of its colour to its neighbours in the palette explains. Not thread-safe.
final class Undither {
    /// The canvas without dither, in the format of the canvas.
    let output: Canvas

    private var reach: PaletteReach
    private var probe = DitherProbe()
    /// What ``output`` was made with.
    private var kind: DitherKind?
    private var strengths: [DitherStrength] = []
    private let remover: DitherRemover
    /// For planes of half the width; nil where there are none.
    private let halfRemover: DitherRemover?
    /// Samples at the edge of a change that depend on it: a block reaches that far.
    private static let margin = 8

    init(width: Int, height: Int, format: PixelFormat) throws(TranscodeError) {
        output = try Canvas(width: width, height: height, format: format)
        reach = try PaletteReach(format)
        remover = try DitherRemover(width: width)
        if case .yuv = format { halfRemover = try DitherRemover(width: (width + 1) / 2) } else { halfRemover = nil }
    }

    /// Enters the palette of the frame that was drawn. Calls are needed for all frames, in order.
    func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) {
        reach.enter(decoder)
    }

    /// Writes a changed canvas to ``output``.
    ///
    /// - Parameter area: Contains all changes since the previous call; the first call takes the whole canvas.
    /// - Returns: A rectangle that contains all changes of the output.
    func update(_ canvas: borrowing Canvas, _ area: Rectangle) -> Rectangle {
        guard !area.isEmpty else { return area }
        let whole = Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height)
        probe.look(at: canvas, reach)
        let isSame = probe.kind == kind
        kind = probe.kind
        guard let kind else {
            let changed = isSame ? area : whole
            copy(canvas, changed)
            return changed
        }
        if !isSame { strengths = Self.strengths(kind, canvas.format) }
        let changed = isSame ? area.expanded(by: Self.margin).clipped(toWidth: canvas.width, height: canvas.height) : whole
        // Blocks begin at multiples of a cell, and chroma is shared by 2 × 2 pixels.
        let (x, y) = (changed.x & ~7, changed.y & ~7)
        let region = Rectangle(x: x, y: y, width: changed.maxX - x, height: changed.maxY - y)
        // What is removed is subtracted from the copy.
        copy(canvas, region)
        switch canvas.format {
        case .yuv:
            filter(remover, LumaPlane(canvas, output), region, strengths[0])
            guard let halfRemover else { break }
            for shift in [UInt32(8), 20] {
                filter(halfRemover, ChromaPlane(canvas, output, shift: shift), region.halved, strengths[1])
            }
        case .rgba:
            for shift in [UInt32(0), 8, 16] {
                filter(remover, ComponentPlane(canvas, output, shift: shift), region, strengths[0])
            }
        }
        return region
    }

    private static func strengths(_ kind: DitherKind, _ format: PixelFormat) -> [DitherStrength] {
        switch format {
        case .yuv: [DitherStrength(kind, .luma), DitherStrength(kind, .chroma)]
        case .rgba: [DitherStrength(kind, .component)]
        }
    }

    private func copy(_ canvas: borrowing Canvas, _ area: Rectangle) {
        for y in area.y..<area.maxY {
            let offset = y * canvas.width + area.x
            (output.pixels + offset).update(from: canvas.pixels + offset, count: area.width)
        }
    }

    /// Removes the dither of one plane in a part of it, whose corner is a multiple of a cell.
    private func filter<Plane: DitheredPlane>(
        _ remover: DitherRemover, _ plane: Plane, _ region: Rectangle, _ strength: DitherStrength
    ) {
        let cell = DitherRemover.cell
        remover.begin(width: region.width)
        for top in stride(from: region.y, to: region.maxY, by: cell * DitherRemover.bandCells) {
            let height = min(region.maxY - top, cell * DitherRemover.bandCells)
            let cells = (height + cell - 1) / cell
            for row in -1...cells {
                remover.clearReach(row: row)
                for y in row * cell..<(row + 1) * cell {
                    load(plane, x: region.x, y: top + y, into: remover.sampleRow(y), remover.reachRow(row), remover)
                }
            }
            remover.run(rows: cells, strength)
            for y in 0..<height {
                plane.store(
                    remover.removedRow(y), remover.reachRow(y / cell), x: region.x, y: top + y, count: region.width)
            }
        }
    }

    /// Reads a row of a band with its border. Rows and columns beyond the plane repeat its edges.
    private func load<Plane: DitheredPlane>(
        _ plane: Plane, x left: Int, y: Int, into samples: UnsafeMutablePointer<Int16>,
        _ cells: UnsafeMutablePointer<Int32>, _ remover: DitherRemover
    ) {
        let row = plane.row(min(max(y, 0), plane.height - 1))
        let cell = DitherRemover.cell
        let end = (remover.columns + 1) * cell
        // What lies inside the plane needs no comparisons.
        let first = max(-cell, -left)
        let last = min(end, plane.width - left)
        for x in first..<last {
            let (sample, distance) = row.read(left &+ x, reach)
            samples[x] = sample
            cells[x &>> 2] &+= distance
        }
        for x in -cell..<first {
            samples[x] = samples[first]
            cells[x &>> 2] &+= row.read(left + first, reach).reach
        }
        for x in last..<max(last, end) {
            samples[x] = samples[last - 1]
            cells[x &>> 2] &+= row.read(left + last - 1, reach).reach
        }
    }
}

extension Rectangle {
    /// The rectangle with a border.
    fileprivate func expanded(by border: Int) -> Rectangle {
        Rectangle(x: x - border, y: y - border, width: width + 2 * border, height: height + 2 * border)
    }

    /// The part of a plane of half the width and height; the corner is a multiple of two.
    fileprivate var halved: Rectangle { Rectangle(x: x / 2, y: y / 2, width: (width + 1) / 2, height: (height + 1) / 2) }
}

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
    /// Pixels around a change that depend on it, because blocks of chroma reach that far.
    private static let margin = 16

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
        // Every second cell begins a block, and chroma is shared by 2 × 2 pixels.
        let (x, y) = (changed.x & ~15, changed.y & ~15)
        let (endX, endY) = (min((changed.maxX + 1) & ~1, canvas.width), min((changed.maxY + 1) & ~1, canvas.height))
        let region = Rectangle(x: x, y: y, width: endX - x, height: endY - y)
        // What is removed is subtracted from the copy.
        copy(canvas, region)
        switch canvas.format {
        case .yuv:
            filter(remover, [FullPlane(canvas, output, shift: 0)], region, strengths[0])
            guard let halfRemover else { break }
            let planes = [UInt32(8), 20].map { ChromaPlane(canvas, output, shift: $0) }
            filter(halfRemover, planes, region.halved, strengths[1])
        case .rgba:
            filter(remover, [UInt32(0), 8, 16].map { FullPlane(canvas, output, shift: $0) }, region, strengths[0])
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

    /// Removes the dither of planes of one size in a part of them, whose corner is a multiple of two cells.
    private func filter<Plane: DitheredPlane>(
        _ remover: DitherRemover, _ planes: [Plane], _ region: Rectangle, _ strength: DitherStrength
    ) {
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
    private static func loadSamples<Plane: DitheredPlane>(
        _ plane: Plane, x left: Int, y: Int, into samples: UnsafeMutablePointer<Int16>, _ remover: DitherRemover
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
    /// One pixel of four counts, in another column in each row, so that each phase of a threshold matrix counts once per cell.
    private static func loadReach<Plane: DitheredPlane>(
        _ plane: Plane, x left: Int, y: Int, into cells: UnsafeMutablePointer<Int32>, _ remover: DitherRemover,
        _ reach: borrowing PaletteReach
    ) {
        let inside = columns(of: plane, x: left, remover).inside
        let (first, step) = plane.words(y: min(max(y, 0), plane.height - 1))
        let words = first + left * step
        let cell = DitherRemover.cell
        let place = [0, 2, 1, 3][y & 3]
        for column in -1...remover.columns {
            let x = min(max(column &* cell &+ place, inside.lowerBound), inside.upperBound &- 1)
            cells[column] &+= 4 &* reach.lookUp(words[x &* step])
        }
    }

    /// The columns of a band with its border, counted from `left`, and those of them that are inside the plane.
    private static func columns<Plane: DitheredPlane>(
        of plane: Plane, x left: Int, _ remover: DitherRemover
    ) -> (all: Range<Int>, inside: Range<Int>) {
        let all = -DitherRemover.cell..<(remover.columns + 1) * DitherRemover.cell
        return (all, all.clamped(to: -left..<plane.width - left))
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

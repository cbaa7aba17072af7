/// Chooses the frame that represents an animation on a poster: a frame with much detail, neither blank nor part of a fade.
///
/// The detail of a frame is the sum of the squared differences between neighbouring cells of a coarse grid of mean colours. A
/// fade has less detail than the picture that it leads to, and a crossfade less than one of its two pictures. Noise and dither
/// vanish in the means.
struct RepresentativeFrame {
    /// The factor, as numerator and denominator, by which a later frame must exceed the best detail so far. So the first of
    /// similar frames is chosen.
    private static let advantage = (51, 50)

    private var grid: ColorGrid
    private var most = -1
    /// The index of the best frame so far.
    private(set) var index = 0

    /// - Parameter background: The colour of transparent pixels.
    init(width: Int, height: Int, background: RGB) {
        grid = ColorGrid(width: width, height: height, background: PixelFormat.rgba.pack(background))
    }

    /// Returns the index of the frame to choose from a file. Examines frames one by one, so that memory stays constant.
    static func index<Decoder: AnimationDecoder & ~Copyable>(
        in bytes: UnsafeRawBufferPointer, by _: Decoder.Type, limits: MediaLimits, background: RGB
    ) throws(TranscodeError) -> Int {
        var walk = try FrameWalk<Decoder>(bytes, limits: limits)
        var choice = RepresentativeFrame(width: walk.canvas.width, height: walk.canvas.height, background: background)
        while try walk.next() {
            choice.look(at: walk.canvas, changed: walk.changed, index: walk.frames - 1)
        }
        return choice.index
    }

    /// Examines the next frame.
    ///
    /// - Parameter changed: A rectangle that contains all changes since the previous frame.
    private mutating func look(at canvas: borrowing Canvas, changed: Rectangle, index: Int) {
        if index > 0 && changed.isEmpty { return }
        grid.update(from: canvas, in: index == 0 ? Rectangle(x: 0, y: 0, width: canvas.width, height: canvas.height) : changed)
        let detail = grid.detail
        if detail * Self.advantage.1 > most * Self.advantage.0 || index == 0 { (most, self.index) = (detail, index) }
    }
}

/// The mean colours of the cells of a canvas, at most 12 × 12.
struct ColorGrid {
    private static let cells = 12

    /// A colour with 4 fractional bits per component.
    private struct Mean: Equatable {
        var red = 0
        var green = 0
        var blue = 0

        /// Returns the squared distance to another colour.
        func difference(from other: Mean) -> Int {
            let (red, green, blue) = (red - other.red, green - other.green, blue - other.blue)
            return red * red + green * green + blue * blue
        }
    }

    private let side: Int
    private let columns: Int
    private let rows: Int
    private let background: UInt32
    private var means: [Mean]

    /// - Parameter background: The colour under transparent pixels, as a word of the canvas' format.
    init(width: Int, height: Int, background: UInt32) {
        side = max(1, (max(width, height) + Self.cells - 1) / Self.cells)
        columns = (width + side - 1) / side
        rows = (height + side - 1) / side
        self.background = background
        means = Array(repeating: Mean(), count: columns * rows)
    }

    /// Computes the means of the cells that a part of the canvas touches.
    ///
    /// - Parameter canvas: A canvas in the format ``PixelFormat/rgba``.
    mutating func update(from canvas: borrowing Canvas, in part: Rectangle) {
        let part = part.clipped(toWidth: canvas.width, height: canvas.height)
        guard !part.isEmpty else { return }
        for row in part.y / side...(part.maxY - 1) / side {
            for column in part.x / side...(part.maxX - 1) / side {
                let cell = Rectangle(x: column * side, y: row * side, width: side, height: side)
                means[row * columns + column] = mean(canvas, cell.clipped(toWidth: canvas.width, height: canvas.height))
            }
        }
    }

    private func mean(_ canvas: borrowing Canvas, _ cell: Rectangle) -> Mean {
        var sum = Mean()
        for y in cell.y..<cell.maxY {
            let line = canvas.pixels + y * canvas.width
            for x in cell.x..<cell.maxX {
                let word = line[x] < PixelFormat.opaque ? PixelFormat.rgba.draw(line[x], .over, over: background) : line[x]
                sum.red &+= Int(word & 255)
                sum.green &+= Int(word >> 8 & 255)
                sum.blue &+= Int(word >> 16 & 255)
            }
        }
        let pixels = cell.width * cell.height
        return Mean(red: sum.red * 16 / pixels, green: sum.green * 16 / pixels, blue: sum.blue * 16 / pixels)
    }

    /// The sum of the squared differences between neighbouring cells.
    var detail: Int {
        var sum = 0
        for row in 0..<rows {
            for column in 0..<columns {
                let cell = row * columns + column
                if column > 0 { sum += means[cell].difference(from: means[cell - 1]) }
                if row > 0 { sum += means[cell].difference(from: means[cell - columns]) }
            }
        }
        return sum
    }
}

/// What a picture shows, as far as an encoder's tools depend on it.
struct PictureContent: Equatable {
    /// Whether most of it is flat, or has few colours with edges between them: drawings, pixel art, terminals, diagrams. Dithered film
    /// may have few colours as well, but they alternate from pixel to pixel.
    var isScreen: Bool

    /// The side of the blocks that are looked at, in pixels.
    private static let side = 16
    /// The most colours of a block that a palette describes well.
    private static let fewColors = 8
    /// In a block of drawings at most one pair of neighbours in this number differs.
    private static let pairsPerEdge = 3

    init(isScreen: Bool) {
        self.isScreen = isScreen
    }

    /// Looks at a canvas of the format ``PixelFormat/rgba``.
    init(_ canvas: borrowing Canvas) {
        var blocks = 0
        var drawn = 0
        for top in stride(from: 0, to: canvas.height, by: Self.side) {
            for left in stride(from: 0, to: canvas.width, by: Self.side) {
                let block = Rectangle(
                    x: left, y: top, width: min(Self.side, canvas.width - left), height: min(Self.side, canvas.height - top))
                blocks += 1
                if Self.isDrawn(canvas, block) { drawn += 1 }
            }
        }
        isScreen = 2 * drawn >= blocks
    }

    /// Looks at the first frame of a file, unless the request states its content.
    init<Decoder: AnimationDecoder & ~Copyable>(
        ofFirstFrame bytes: UnsafeRawBufferPointer, by _: Decoder.Type, limits: MediaLimits, tune: TranscodeOptions.Tune
    ) throws(TranscodeError) {
        switch tune {
        case .film:
            self.init(isScreen: false)
            return
        case .screen, .pixel:
            self.init(isScreen: true)
            return
        case .automatic: break
        }
        var walk = try FrameWalk<Decoder>(bytes, limits: limits)
        _ = try walk.next()
        self.init(walk.canvas)
    }

    /// Whether a block is flat or has few colours with edges between them.
    private static func isDrawn(_ canvas: borrowing Canvas, _ block: Rectangle) -> Bool {
        var colors: [UInt32] = []
        var edges = 0
        for y in block.y..<block.maxY {
            let row = canvas.pixels + y * canvas.width
            var last = row[block.x]
            for x in block.x..<block.maxX {
                let color = row[x]
                if color != last { edges += 1 } else if x > block.x { continue }
                last = color
                if colors.contains(color) { continue }
                colors.append(color)
                if colors.count > fewColors { return false }
            }
        }
        return edges * pairsPerEdge <= block.width * block.height
    }
}

/// What a picture shows, as far as an encoder's tools depend on it.
struct PictureContent: Equatable {
    /// Whether most of it is flat, or has few colours with edges between them: drawings, pixel art, terminals, diagrams. Dithered film
    /// may have few colours as well, but they alternate from pixel to pixel.
    var isScreen: Bool
    /// Whether it is a film whose dither is taken out, and that has no noise of its own that shows.
    var isUndithered = false

    /// The side of the blocks that are looked at, in pixels.
    private static let side = 16
    /// The most colours of a block that a palette describes well.
    private static let fewColors = 8
    /// In a block of drawings at most one pair of neighbours in this number differs.
    private static let pairsPerEdge = 3

    init(isScreen: Bool, isUndithered: Bool = false) {
        self.isScreen = isScreen
        self.isUndithered = isUndithered
    }

    /// Whether a canvas of the format ``PixelFormat/rgba`` shows a screen.
    private static func isScreen(_ canvas: borrowing Canvas) -> Bool {
        var blocks = 0
        var drawn = 0
        for top in stride(from: 0, to: canvas.height, by: side) {
            for left in stride(from: 0, to: canvas.width, by: side) {
                let block = Rectangle(
                    x: left, y: top, width: min(side, canvas.width - left), height: min(side, canvas.height - top))
                blocks += 1
                if isDrawn(canvas, block) { drawn += 1 }
            }
        }
        return 2 * drawn >= blocks
    }

    /// Looks at the first frame of a file as the encoder gets it, as far as the request does not state its content.
    ///
    /// - Parameter undithers: Whether dither is taken out of the frames.
    init<Decoder: AnimationDecoder & ~Copyable>(
        ofFirstFrame bytes: UnsafeRawBufferPointer, by _: Decoder.Type, limits: MediaLimits, tune: TranscodeOptions.Tune,
        undithers: Bool = false
    ) throws(TranscodeError) {
        let stated: Bool? =
            switch tune {
            case .film: false
            case .screen, .pixel: true
            case .automatic: nil
            }
        // Drawings have the same settings with and without their dither.
        if let stated, stated || !undithers {
            self.init(isScreen: stated)
            return
        }
        var walk = try FrameWalk<Decoder>(bytes, limits: limits, undithers: undithers)
        _ = try walk.next()
        let looksLikeScreen = try walk.withPicture { Self.isScreen($0) }
        let isScreen = stated ?? looksLikeScreen
        self.init(isScreen: isScreen, isUndithered: !isScreen && walk.hasRemovedFilmDither)
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

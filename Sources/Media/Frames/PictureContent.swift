/// What a picture shows, as far as an encoder's tools depend on it.
struct PictureContent: Equatable {
    /// Whether most of it is flat, or has few colours with edges between them: drawings, pixel art, terminals, diagrams. Films that were
    /// reduced to a palette may have few colours as well, but these are alike, or alternate from pixel to pixel.
    let isScreen: Bool
    /// Whether it is a film whose dither is taken out, and that has no noise of its own that shows.
    let isUndithered: Bool

    /// The side of the blocks that are looked at, in pixels.
    private static let side = 16
    /// The most colours of a block that a palette describes well.
    private static let fewColors = 8
    /// In a block of drawings at most one pair of neighbours in this number differs.
    private static let pairsPerEdge = 3
    /// The difference of a component up to which colours are alike: those of a smooth area of a film, or of a gradient.
    private static let alike: UInt32 = 32

    init(isScreen: Bool, isUndithered: Bool = false) {
        self.isScreen = isScreen
        self.isUndithered = isUndithered
    }

    /// Looks at the first frame of a file as the encoder gets it, unless the request states its content.
    init<Decoder: AnimationDecoder & ~Copyable>(
        ofFirstFrame bytes: UnsafeRawBufferPointer, by _: Decoder.Type, limits: MediaLimits, options: TranscodeOptions
    ) throws(TranscodeError) {
        let stated: Bool? =
            switch options.tune {
            case .film: false
            case .screen, .pixel: true
            case .automatic: nil
            }
        // Drawings have the same settings with and without their dither.
        if let stated, stated || !options.undither {
            self.init(isScreen: stated)
            return
        }
        var walk = try FrameWalk<Decoder>(bytes, limits: limits, undithers: options.undither)
        _ = try walk.next()
        let looksLikeScreen = try walk.withPicture { Self.isScreen($0) }
        let isScreen = stated ?? looksLikeScreen
        self.init(isScreen: isScreen, isUndithered: !isScreen && walk.hasRemovedFilmDither)
    }

    /// Whether a canvas of the format ``PixelFormat/rgba`` shows a screen.
    private static func isScreen(_ canvas: borrowing Canvas) -> Bool {
        var drawn = 0
        var detailed = 0
        for top in stride(from: 0, to: canvas.height, by: side) {
            for left in stride(from: 0, to: canvas.width, by: side) {
                let block = Rectangle(
                    x: left, y: top, width: min(side, canvas.width - left), height: min(side, canvas.height - top))
                switch look(at: canvas, block) {
                case .drawn: drawn += 1
                case .detailed: detailed += 1
                case .smooth: break
                }
            }
        }
        return drawn > 0 && drawn >= detailed
    }

    private enum BlockContent {
        /// One colour, or few with edges between them.
        case drawn
        /// Few colours that are alike. Drawings and films have such blocks.
        case smooth
        case detailed
    }

    private static func look(at canvas: borrowing Canvas, _ block: Rectangle) -> BlockContent {
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
                if colors.count > fewColors { return .detailed }
            }
        }
        guard edges * pairsPerEdge <= block.width * block.height else { return .detailed }
        return colors.count > 1 && areAlike(colors) ? .smooth : .drawn
    }

    private static func areAlike(_ colors: [UInt32]) -> Bool {
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            let components = colors.lazy.map { $0 >> shift & 0xff }
            if let least = components.min(), let greatest = components.max(), greatest - least > alike { return false }
        }
        return true
    }
}

/// What the pictures of a video show, as far as an encoder's tools depend on it.
struct PictureContent: Equatable {
    /// Whether most of the picture is flat or has few colours with edges between them, and what changes is not a film: drawings, pixel
    /// art, terminals, diagrams. Films that were reduced to a palette may have few colours as well, but these are alike, or alternate
    /// from pixel to pixel.
    let isDrawing: Bool
    /// Whether the dither of a palette is taken out.
    let losesDither: Bool
    /// Whether it is a film whose dither is taken out, and that has no noise of its own that shows.
    let isUndithered: Bool
    /// The ``FilmDetail`` of such a film, 0 for others.
    let detail: Double
    /// Whether it is a drawing of few pixels and few colours, whose single pixels are meant to be seen.
    let isPixelArt: Bool
    /// The share of what changes that comes from far away in the picture before, 0…1; see ``FarMotion``.
    let farShare: Double
    /// The mean share of the blocks of 16 × 16 pixels in which a picture differs from the one before: 0…1, and 0 for a single picture.
    let changedShare: Double
    /// The number of frames of the requested part.
    let frames: Int
    /// Whether the source has few pixels, whose colours show whatever they are: an emoji or a sticker.
    let isSmall: Bool

    /// The resolution of colours for encoders that have a choice: full where 4:2:0 shows.
    var chroma: ChromaFormat

    init(
        isDrawing: Bool, losesDither: Bool = false, isUndithered: Bool = false, detail: Double = 0, isPixelArt: Bool = false,
        farShare: Double = 0, changedShare: Double = 0, frames: Int = 1, isSmall: Bool = false, chroma: ChromaFormat = .half
    ) {
        self.isDrawing = isDrawing
        self.losesDither = losesDither
        self.isUndithered = isUndithered
        self.detail = detail
        self.isPixelArt = isPixelArt
        self.farShare = farShare
        self.changedShare = changedShare
        self.frames = frames
        self.isSmall = isSmall
        self.chroma = chroma
    }

    /// The pixels that change in all frames of a video of `pixels` per picture, on which encoders spend most of their time.
    func changedPixels(ofPictures pixels: Int) -> Double {
        Double(pixels) * (1 + Double(max(0, frames - 1)) * changedShare)
    }
}

extension Transcoder {
    /// The conversion with what the content decides about dither.
    func decided(by content: PictureContent) -> Transcoder {
        var transcoder = self
        transcoder.options.undither = content.losesDither ? .always : .never
        return transcoder
    }
}

/// The contents of the blocks of pictures.
struct BlockContents {
    /// The side of a block in pixels: that of a macroblock.
    static let side = 16

    /// Blocks of one colour, or of few with edges between them.
    private(set) var drawn = 0
    /// Blocks that are neither drawn nor smooth. Smooth ones have few colours that are alike; drawings and films have such blocks.
    private(set) var detailed = 0
    private(set) var smooth = 0

    /// Whether at least half of the blocks that are not smooth are drawn, and these are not just a detail of a smooth picture.
    var areDrawn: Bool { drawn > 0 && drawn >= detailed && Self.detail * drawn >= drawn + detailed + smooth }

    /// Less than one block in this number is a detail.
    private static let detail = 16

    /// Adds a block of a canvas of the format ``PixelFormat/rgba``.
    ///
    /// - Parameters:
    ///   - allowsManyColors: Whether a block with many colours may count as drawn if most neighbours are equal, as in smooth lettering.
    ///   - weight: The number of blocks that it stands for.
    mutating func add(_ canvas: borrowing Canvas, _ place: BlockPlace, allowsManyColors: Bool, weight: Int) {
        switch Self.kind(canvas, place.rectangle(in: canvas), allowsManyColors: allowsManyColors) {
        case .drawn: drawn += weight
        case .detailed: detailed += weight
        case .smooth: smooth += weight
        }
    }

    private enum Kind {
        case drawn
        case smooth
        case detailed
    }

    /// In a drawn block, at most one in this number of pairs of neighbours differs.
    private static let pairsPerEdge = 3
    /// The difference of a component up to which colours are alike: those of a smooth area of a film, or of a gradient.
    private static let alike: UInt32 = 32

    private static func kind(_ canvas: borrowing Canvas, _ block: Rectangle, allowsManyColors: Bool) -> Kind {
        // The most colours of a block that a palette describes well.
        var colors = InlineArray<8, UInt32>(repeating: 0)
        var count = 0
        var hasMore = false
        var edges = 0
        for y in block.y..<block.maxY {
            let row = canvas.pixels + y * canvas.width
            var last = row[block.x]
            for x in block.x..<block.maxX {
                let color = row[x]
                if color != last { edges += 1 } else if x > block.x { continue }
                last = color
                if hasMore { continue }
                var index = 0
                while index < count, colors[index] != color { index += 1 }
                if index < count { continue }
                guard count < colors.count else {
                    guard allowsManyColors else { return .detailed }
                    hasMore = true
                    continue
                }
                colors[count] = color
                count += 1
            }
        }
        guard edges * pairsPerEdge <= block.width * block.height else { return .detailed }
        return count > 1 && areAlike(colors, count) ? .smooth : .drawn
    }

    private static func areAlike(_ colors: borrowing InlineArray<8, UInt32>, _ count: Int) -> Bool {
        for shift in stride(from: UInt32(0), to: 32, by: 8) {
            var (least, greatest): (UInt32, UInt32) = (255, 0)
            for index in 0..<count {
                let component = colors[index] >> shift & 0xff
                (least, greatest) = (min(least, component), max(greatest, component))
            }
            if greatest - least > alike { return false }
        }
        return true
    }
}

/// The place of a block of ``BlockContents/side``².
struct BlockPlace {
    var column: Int
    var row: Int

    /// The part of the block inside a canvas.
    func rectangle(in canvas: borrowing Canvas) -> Rectangle {
        let side = BlockContents.side
        return Rectangle(x: column * side, y: row * side, width: side, height: side)
            .clipped(toWidth: canvas.width, height: canvas.height)
    }
}

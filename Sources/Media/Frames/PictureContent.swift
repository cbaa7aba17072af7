/// The content of a video's pictures that determines the choice of encoder tools.
struct PictureContent: Equatable {
    /// Whether most of the picture is flat or has few colours with edges between them, and the changes are not a film:
    /// drawings, pixel art, terminals, diagrams. Films reduced to a palette may have few colours, too, but these are similar,
    /// or alternate from pixel to pixel.
    let isDrawing: Bool
    /// Whether the dither of a palette is removed.
    var losesDither = false
    /// Whether this is a film whose dither is removed and that has no visible noise of its own.
    var isUndithered = false
    /// The ``FilmDetail`` of an undithered film; 0 for other content.
    var detail = 0.0
    /// Whether this is a drawing of few pixels and few colours, whose individual pixels are meant to be seen.
    var isPixelArt = false
    /// The share of changes that come from far away in the previous picture, 0…1; see ``FarMotion``.
    var farShare = 0.0
    /// The mean share of 16 × 16 blocks that differ from the previous picture, 0…1; 0 for a single picture.
    var changedShare = 0.0
    /// The number of frames of the requested part.
    var frames = 1
    /// Whether the source is so small that a loss of colour shows whatever the content, as in an emoji or a sticker.
    var isSmall = false
    /// The chroma format for encoders that have a choice: full where the loss of 4:2:0 is visible.
    var chroma = ChromaFormat.half

    /// Returns the changed pixels in all frames of a video of `pixels` per picture. Encoders spend most of their time on them.
    func changedPixels(ofPictures pixels: Int) -> Double {
        Double(pixels) * (1 + Double(max(0, frames - 1)) * changedShare)
    }
}

extension ScannedSource where Decoder: ~Copyable {
    /// Examines the content, which then decides whether dither is removed.
    mutating func decideByContent() throws(TranscodeError) -> PictureContent {
        let content = try ContentProbe.content(of: self)
        transcoder.options.undither = content.losesDither ? .always : .never
        return content
    }
}

/// Counts of blocks by their content.
struct BlockContents {
    /// The side of a block in pixels: that of a macroblock.
    static let side = 16

    /// Blocks of one colour, or of few colours with edges between them.
    private(set) var drawn = 0
    /// Blocks that are neither drawn nor smooth. Smooth blocks have few, similar colours, and occur in drawings and films.
    private(set) var detailed = 0
    private(set) var smooth = 0

    /// Whether at least half of the blocks that are not smooth are drawn, and these are more than a detail of a smooth picture.
    var areDrawn: Bool { drawn > 0 && drawn >= detailed && Self.detail * drawn >= drawn + detailed + smooth }

    /// Drawn blocks are a detail if they are fewer than one block in this number.
    private static let detail = 16

    /// Adds a block of a canvas of the format ``PixelFormat/rgba``.
    ///
    /// - Parameters:
    ///   - allowsManyColors: Whether many-coloured blocks may count as drawn if most neighbours are equal, as in smooth text.
    ///   - weight: The number of blocks that the block represents.
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

    /// In a drawn block, at most one in this number of neighbouring pairs differs.
    private static let pairsPerEdge = 3
    /// The largest difference between the components of similar colours, as in smooth areas of films and in gradients.
    private static let alike: UInt32 = 32

    private static func kind(_ canvas: borrowing Canvas, _ block: Rectangle, allowsManyColors: Bool) -> Kind {
        // A palette describes at most this number of colours in a block well.
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

/// The position of a block of ``BlockContents/side``² pixels.
struct BlockPlace {
    var column: Int
    var row: Int

    /// Returns the part of the block inside a canvas.
    func rectangle(in canvas: borrowing Canvas) -> Rectangle {
        let side = BlockContents.side
        return Rectangle(x: column * side, y: row * side, width: side, height: side)
            .clipped(toWidth: canvas.width, height: canvas.height)
    }
}

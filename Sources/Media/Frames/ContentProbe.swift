/// Examines frames of the requested part of an animation to choose an encoder's tools.
///
/// If every frame covers the canvas, the probe examines pairs of successive frames, spread over the part; in a clip, pairs
/// begin with sync samples. Otherwise, and in clips with few sync samples, it examines the first frames of the part. If nothing
/// changes at first, as after a black start, it examines later frames, too.
struct ContentProbe: ~Copyable {
    /// The blocks of whole pictures, and the blocks that differ from the previous picture.
    private var whole = BlockContents()
    private var changes = BlockContents()
    /// The number of blocks that differ from the previous picture, and of all blocks in the compared pictures.
    private var changedBlocks = 0
    private var comparedBlocks = 0
    /// The frames after the part's first frame, and the bytes of their data: up to the last picture, and after it.
    private var comparedFrames = 0
    private var comparedBytes = 0
    private var otherFrames = 0
    private var otherBytes = 0
    /// The number of all blocks in pictures that differ from the previous one.
    private var changedPictureBlocks = 0
    private var motion = FarMotion()
    private var chroma = ChromaProbe()
    /// The number of examined pictures, and of those that are films with dither.
    private var pictures = 0
    private var ditheredFilms = 0
    /// Whether the pictures were examined without their dither, and the evidence of dither.
    private var undithers = false
    private var dither = DitherEvidence()
    /// The largest number of colours in a palette.
    private var paletteColors = 0
    /// Whether the pictures examined as a whole are small and have few colours.
    private var hasFewColors = true
    /// The last examined picture.
    private let previous: Canvas

    /// The colour of transparent pixels, as a word of the pictures.
    private let background: UInt32
    /// The number of frames in the part.
    private let frames: Int

    private init(width: Int, height: Int, frames: Int, background: RGB) throws(TranscodeError) {
        self.frames = frames
        self.background = PixelFormat.rgba.pack(background)
        previous = try Canvas(width: width, height: height, format: .rgba)
    }

    /// Examines an animation. If the options leave the dither to the content, ``PictureContent/losesDither`` is the decision.
    static func content<Decoder: AnimationDecoder & ~Copyable>(
        of source: ScannedSource<Decoder>
    ) throws(TranscodeError) -> PictureContent {
        let options = source.options
        let probe = try look(at: source, undithers: options.undithers)
        let content = probe.content(options)
        guard options.undither == .automatic, !content.isDrawing, probe.paletteColors >= fewestColorsOfFilm else {
            return content
        }
        let withoutDither = try look(at: source, undithers: true)
        guard withoutDither.dither.isCertain(paletteColors: probe.paletteColors) else { return content }
        let undithered = withoutDither.content(options)
        return undithered.isDrawing ? content : undithered
    }

    /// The smallest palette of a dithered film. Pixel art usually has fewer colours.
    private static let fewestColorsOfFilm = 32

    private static func look<Decoder: AnimationDecoder & ~Copyable>(
        at source: ScannedSource<Decoder>, undithers: Bool
    ) throws(TranscodeError) -> ContentProbe {
        let (summary, plan) = (source.summary, source.plan)
        var probe = try ContentProbe(
            width: summary.width, height: summary.height, frames: plan.count, background: source.options.background)
        probe.undithers = undithers
        let schedule = Schedule(summary, plan, isSlow: undithers)
        var walk = try FrameWalk<Decoder>(source.bytes, limits: source.limits, undithers: undithers)
        var timeline = Timeline(source.options.time, of: summary)
        let all = Rectangle(x: 0, y: 0, width: summary.width, height: summary.height)
        /// The number of the frame among those that become samples.
        var number = 0
        /// The changes since the last picture.
        var changed = Rectangle.empty
        var spent = 0
        while walk.frames < summary.delays.count, number < plan.count, schedule.allows(spent, found: probe.changedBlocks) {
            let isShown = timeline.advance(by: summary.delays[walk.frames]).flatMap { timeline.admit($0) } != nil
            if isShown { number += 1 }
            if summary.hasWholeFrames && !(isShown && schedule.includes(number)) {
                guard try walk.skip() else { break }
                changed = all
                continue
            }
            let (coded, data) = (walk.codedPixels, walk.dataBytes)
            guard try walk.next() else { break }
            if number > 0 { spent += walk.codedPixels - coded }
            if probe.pictures > 0 {
                probe.comparedFrames += 1
                probe.comparedBytes += walk.dataBytes - data
            }
            changed = changed.union(walk.changed)
            guard isShown else { continue }
            probe.paletteColors = max(probe.paletteColors, walk.paletteColors)
            let area = undithers || probe.pictures == 0 ? all : changed
            changed = .empty
            let isFirst = schedule.isFirst(number)
            try walk.withPicture { picture throws(TranscodeError) in
                if isFirst { probe.look(at: picture) } else { probe.compare(picture, area) }
            }
            probe.pictures += 1
            if walk.hasRemovedFilmDither { probe.ditheredFilms += 1 }
            if let evidence = walk.ditherEvidence { probe.dither.add(evidence) }
        }
        while !summary.hasWholeFrames || schedule.isOfBeginning, walk.frames < summary.delays.count, !timeline.isOver {
            let data = walk.dataBytes
            _ = timeline.advance(by: summary.delays[walk.frames])
            guard try walk.skip() else { break }
            probe.otherFrames += 1
            probe.otherBytes += walk.dataBytes - data
        }
        // The last picture differs most from the first one.
        if probe.pictures > 1 { probe.lookAgain() }
        return probe
    }

    private func content(_ options: TranscodeOptions) -> PictureContent {
        let isDrawing =
            switch options.tune {
            case .film: false
            case .screen, .pixel: true
            case .automatic: whole.areDrawn && !changesAreFilm
            }
        let isSmall = previous.width * previous.height <= Self.smallPicture
        let isUndithered = !isDrawing && ditheredFilms > 0 && 2 * ditheredFilms >= pictures
        let shown = PictureGeometry(width: previous.width, height: previous.height, options: options)
        let mayBeFull = options.chroma == .automatic && shown.width * shown.height <= Self.mostPixelsOfFullChroma
        return PictureContent(
            isDrawing: isDrawing, losesDither: undithers, isUndithered: isUndithered,
            detail: isUndithered ? FilmDetail.energy(of: previous) : 0,
            isPixelArt: options.tune == .pixel || (options.tune == .automatic && isDrawing && hasFewColors),
            farShare: motion.share, changedShare: changedShare, frames: frames, isSmall: isSmall,
            chroma: mayBeFull && chroma.isVisible && (isDrawing || isSmall || hasFlatColors) ? .full : .half)
    }

    /// Whether few colours make up most of the last picture, as in text over a picture or a drawing with gradients, and the
    /// loss of colour does not come from noise.
    private var hasFlatColors: Bool { !chroma.isNoise && ColorConcentration.share(of: previous) > Self.flatConcentration }

    private static let flatConcentration: Float = 0.7

    /// The share of changed blocks, averaged over the part. If only the beginning was composed, the bytes of the other frames
    /// show whether more or less changes there.
    private var changedShare: Double {
        guard comparedBlocks > 0 else { return 0 }
        let share = Double(changedBlocks) / Double(comparedBlocks)
        guard otherFrames > 0, comparedBytes > 0 else { return share }
        let bytes = Double(comparedBytes + otherBytes) / Double(comparedFrames + otherFrames)
        return min(1, share * bytes / (Double(comparedBytes) / Double(comparedFrames)))
    }

    /// Whether the changes are not drawn, and are not small in the pictures that change.
    private var changesAreFilm: Bool {
        changedBlocks * Self.smallChange > changedPictureBlocks && changes.drawn * 3 < changes.detailed
    }

    /// The maximum number of pixels in pictures whose loss of colour shows whatever the content: emoji and stickers.
    private static let smallPicture = 128 * 128

    /// The largest picture with full chroma. For larger pictures, encoders with full chroma need more memory than a job has: libaom
    /// from 2.5 million pixels with alpha and from 3.7 million without, and libvpx at 3840 × 2160.
    private static let mostPixelsOfFullChroma = 2_100_000

    /// A change of fewer than one block in this number is small.
    private static let smallChange = 10

    /// The number of blocks to examine in a picture; rounding may almost double it.
    private static let mostBlocks = 1024
    private static let mostChangedBlocks = 256

    private mutating func look(at picture: borrowing Canvas) {
        Self.add(picture, to: &whole, &chroma, background: background)
        if hasFewColors { hasFewColors = Self.hasFewColors(picture) }
        previous.copy(picture, Rectangle(x: 0, y: 0, width: picture.width, height: picture.height))
    }

    private mutating func lookAgain() { Self.add(previous, to: &whole, &chroma, background: background) }

    private static func add(
        _ picture: borrowing Canvas, to contents: inout BlockContents, _ chroma: inout ChromaProbe, background: UInt32
    ) {
        let columns = blocks(picture.width)
        let count = columns * blocks(picture.height)
        let step = max(1, count / mostBlocks)
        for index in stride(from: 0, to: count, by: step) {
            let place = BlockPlace(column: index % columns, row: index / columns)
            contents.add(picture, place, allowsManyColors: false, weight: step)
            chroma.look(at: picture, place.rectangle(in: picture), background: background, weight: step)
        }
    }

    /// The longest side of pixel art, and its maximum number of colours.
    private static let longestPixelArt = 256
    private static let mostPixelArtColors = 48

    private static func hasFewColors(_ picture: borrowing Canvas) -> Bool {
        guard max(picture.width, picture.height) <= longestPixelArt else { return false }
        var colors: Set<UInt32> = []
        var last: UInt32?
        for index in 0..<picture.width * picture.height where picture.pixels[index] != last {
            last = picture.pixels[index]
            if colors.insert(picture.pixels[index]).inserted && colors.count > mostPixelArtColors { return false }
        }
        return true
    }

    private static func blocks(_ pixels: Int) -> Int { (pixels + BlockContents.side - 1) / BlockContents.side }

    /// Examines the blocks that differ from the last examined picture.
    ///
    /// - Parameter area: A rectangle that contains all differences.
    private mutating func compare(_ picture: borrowing Canvas, _ area: Rectangle) {
        let blocks = Self.blocks(picture.width) * Self.blocks(picture.height)
        comparedBlocks += blocks
        guard !area.isEmpty else { return }
        let side = BlockContents.side
        var places: [BlockPlace] = []
        for row in area.y / side...(area.maxY - 1) / side {
            for column in area.x / side...(area.maxX - 1) / side {
                let place = BlockPlace(column: column, row: row)
                if differs(picture, place.rectangle(in: picture)) { places.append(place) }
            }
        }
        changedBlocks += places.count
        if !places.isEmpty { changedPictureBlocks += blocks }
        motion.look(at: picture, places, of: blocks, in: previous)
        let step = max(1, places.count / Self.mostChangedBlocks)
        for index in stride(from: 0, to: places.count, by: step) {
            changes.add(picture, places[index], allowsManyColors: true, weight: step)
        }
        previous.copy(picture, area)
    }

    private func differs(_ picture: borrowing Canvas, _ block: Rectangle) -> Bool {
        for y in block.y..<block.maxY {
            let offset = y * picture.width + block.x
            let (new, old) = (picture.pixels + offset, previous.pixels + offset)
            var difference: UInt32 = 0
            for x in 0..<block.width { difference |= new[x] ^ old[x] }
            if difference != 0 { return true }
        }
        return false
    }

    /// The choice of frames to examine.
    private struct Schedule {
        /// The numbers of the first frames of pairs, from 1; empty if successive frames are examined.
        private let starts: [Int]
        /// Whether successive frames of a clip are examined because it has few sync samples.
        let isOfBeginning: Bool
        /// The minimum and the maximum number of frame pixels to compose.
        private let budget: Int
        private let mostPixels: Int
        private let blocks: Int

        init(_ summary: AnimationSummary, _ plan: SamplePlan, isSlow: Bool) {
            let count = plan.count
            let most = isSlow ? 2 : min(8, max(3, count / 12))
            let isLong = summary.hasWholeFrames && count > 2 * most
            let syncs = plan.syncs.filter { $0 < count }
            isOfBeginning = isLong && syncs.count < min(3, most)
            let pairs = isLong && !isOfBeginning ? min(most, syncs.count) : 0
            starts = (0..<pairs).map { syncs[$0 * (syncs.count - 1) / max(1, pairs - 1)] }
            let canvas = summary.width * summary.height
            budget = pairs > 0 ? .max : canvas * (isSlow ? max(3, count / 32) : max(6, count / 8))
            mostPixels = pairs > 0 ? .max : 3 * budget
            blocks = canvas / (BlockContents.side * BlockContents.side) + 1
        }

        /// Whether to compose another frame.
        ///
        /// - Parameter found: The number of changed blocks found so far.
        func allows(_ spent: Int, found: Int) -> Bool { spent < budget || (found < blocks / 2 && spent < mostPixels) }

        /// Whether a frame of the part is examined, counted from 1.
        func includes(_ number: Int) -> Bool {
            starts.isEmpty || starts.contains { $0 == number || $0 + 1 == number }
        }

        /// Whether a frame is the first of a pair or of the part, so that there is no frame to compare it with.
        func isFirst(_ number: Int) -> Bool { starts.isEmpty ? number == 1 : starts.contains(number) }
    }
}

import TestSupport
import Testing

@testable import Media

@Suite("APNGs are read as the specification says") struct APNGReaderTests {
    private typealias Frame = APNGBuilder.Frame

    private func builder(width: Int = 4, height: Int = 2, plays: Int? = 0) -> APNGBuilder {
        APNGBuilder(width: width, height: height, plays: plays)
    }

    private func full(_ word: UInt32, width: Int = 4, height: Int = 2) -> Frame {
        Frame(width: width, height: height, word: word)
    }

    private func spread(_ word: UInt32, _ count: Int = 8) -> [UInt32] { Array(repeating: word, count: count) }

    /// A canvas of 4 × 2 in two words: the frame of one pixel lies at the upper left.
    private func spread(_ corner: UInt32, _ rest: UInt32) -> [UInt32] { [corner] + spread(rest, 7) }

    @Test func aPictureBeforeTheFirstControlIsNoFrame() throws {
        var png = builder()
        png.addPicture(full(Word.white))
        png.add(full(Word.red))
        png.add(full(Word.green))
        #expect(try Animation.compose(png.finish()).canvases == [spread(Word.red), spread(Word.green)])
        var included = builder()
        included.add(full(Word.white))
        included.add(full(Word.red))
        #expect(try Animation.compose(included.finish()).canvases == [spread(Word.white), spread(Word.red)])
    }

    @Test(arguments: [
        // What the second frame, one pixel of blue, leaves for the third, one pixel that shows nothing.
        (0, Word.blue), (1, Word.clear), (2, Word.red),
    ])
    func framesAreDisposedOf(_ disposal: Int, _ corner: UInt32) throws {
        var png = builder()
        png.add(full(Word.red))
        png.add(Frame(width: 1, height: 1, word: Word.blue)) { $0.disposal = disposal }
        png.add(Frame(width: 1, height: 1, word: Word.clear)) {
            ($0.x, $0.blend) = (3, 1)
        }
        let composed = try Animation.compose(png.finish())
        #expect(composed.canvases == [spread(Word.red), spread(Word.blue, Word.red), spread(corner, Word.red)])
        #expect(composed.changes[1] == Rectangle(x: 0, y: 0, width: 1, height: 1))
    }

    @Test func theFirstFrameIsClearedWhereItWouldBeRestored() throws {
        var png = builder()
        png.add(full(Word.red)) { $0.disposal = 2 }
        png.add(Frame(width: 1, height: 1, word: Word.blue))
        #expect(try Animation.compose(png.finish()).canvases == [spread(Word.red), spread(Word.blue, Word.clear)])
    }

    @Test func alphaIsBlendedOrReplaces() throws {
        for (blend, corner): (Int, UInt32) in [(0, Word.halfBlue), (1, 0xff80_007f)] {
            var png = builder()
            png.add(full(Word.red))
            png.add(Frame(width: 1, height: 1, word: Word.halfBlue)) { $0.blend = blend }
            #expect(try Animation.compose(png.finish()).canvases.last == spread(corner, Word.red))
        }
    }

    @Test(arguments: [nil, 0, 1, 2, 7] as [Int?])
    func playsAreRepetitionsAndOneMore(_ plays: Int?) throws {
        var png = builder(plays: plays)
        png.add(full(Word.red))
        let expected: [Int?: Int?] = [0: 0, 2: 1, 7: 6]
        #expect(try Animation.compose(png.finish()).summary.loopCount == expected[plays] ?? nil)
    }

    // MARK: Times

    @Test func delaysAreExactFractions() throws {
        let delays = [(1, 30), (1001, 30_000), (3, 0), (65_535, 1), (0, 5), (1, 100), (1, 99), (11, 1000)]
        var png = builder()
        for delay in delays { png.add(full(Word.red)) { $0.delay = delay } }
        let summary = try Animation.compose(png.finish()).summary
        for (units, delay) in zip(summary.delays, delays) {
            #expect(units * (delay.1 == 0 ? 100 : delay.1) == delay.0 * summary.timescale, "\(delay)")
        }
        #expect(summary.timescale % 100 == 0)
        let shown = summary.delays.map { FrameClock.shownDelay($0, timescale: summary.timescale) }
        // Browsers read whole milliseconds, so that a ninety-ninth is 10 ms, which they replace by a tenth of a second.
        #expect(shown[4...6].allSatisfy { $0 == summary.timescale / 10 } && shown[7] == summary.delays[7])
    }

    @Test func fractionsWithoutCommonUnitAreRoundedToMicroseconds() throws {
        let primes = [65_521, 65_519, 65_497, 65_479, 65_449]
        var png = builder()
        for index in 0..<400 { png.add(full(Word.red)) { $0.delay = (9973 + index, primes[index % primes.count]) } }
        let summary = try Animation.compose(png.finish()).summary
        #expect(summary.timescale == 1_000_000)
        let exact = (0..<400).reduce(0.0) { $0 + Double(9973 + $1) / Double(primes[$1 % primes.count]) }
        #expect(abs(Double(summary.delays.reduce(0, +)) / 1_000_000 - exact) < 0.000_001)
    }

    @Test func videosHaveTheTimesOfTheFractions() throws {
        var png = APNGBuilder(width: 16, height: 16)
        for (index, delay) in [(1, 30), (1, 24), (1001, 30_000)].enumerated() {
            png.add(full([Word.red, Word.green, Word.blue][index], width: 16, height: 16)) { $0.delay = delay }
        }
        let video = try Converted(png.finish())
        #expect(video.result.timescale == 30_000 && video.boxes.durations == [1000, 1250, 1001])
        #expect(video.result.duration == 3251 && video.result.sourceFormat == .apng)
    }

    @Test func roundedTimesDoNotExceedTheFrameRate() throws {
        var png = APNGBuilder(width: 16, height: 16)
        let delays = Array(repeating: (1, 30), count: 20) + [(1001, 30_000), (999, 65_521)]
        for (index, delay) in delays.enumerated() {
            png.add(full([Word.red, Word.green, Word.blue][index % 3], width: 16, height: 16)) { $0.delay = delay }
        }
        let video = try Converted(png.finish()) { $0.time.ceiling = 30_000 }
        #expect(video.result.timescale == 1_000_000 && video.result.samples == 22)
    }

    // MARK: Codings

    /// Every colour type with every depth (§11.2.1), as it is and interlaced.
    private static let codings: [APNGBuilder.Coding] = [
        (0, [1, 2, 4, 8, 16]), (2, [8, 16]), (3, [1, 2, 4, 8]), (4, [8, 16]), (6, [8, 16]),
    ]
    .flatMap { type, depths in
        depths.flatMap { depth in
            [false, true].map { APNGBuilder.Coding(type: type, depth: depth, isInterlaced: $0) }
        }
    }

    /// The word of a pixel as it is to be decoded.
    private func word(_ samples: [Int], _ coding: APNGBuilder.Coding, _ palette: [UInt32]) -> UInt32 {
        let most = (1 << coding.depth) - 1
        let bytes = samples.map { UInt32((Double($0) * 255 / Double(most)).rounded()) }
        switch coding.type {
        case 0: return 0xff00_0000 | bytes[0] << 16 | bytes[0] << 8 | bytes[0]
        case 2: return 0xff00_0000 | bytes[2] << 16 | bytes[1] << 8 | bytes[0]
        case 3: return palette[samples[0]]
        case 4: return bytes[1] << 24 | bytes[0] << 16 | bytes[0] << 8 | bytes[0]
        default: return bytes[3] << 24 | bytes[2] << 16 | bytes[1] << 8 | bytes[0]
        }
    }

    @Test(arguments: codings.indices)
    func everyCodingIsDecoded(_ index: Int) throws {
        let coding = Self.codings[index]
        var numbers = SeededNumbers(seed: UInt64(index))
        let (width, height) = (13, 9)
        let palette = (0..<1 << min(8, coding.depth)).map { _ in
            UInt32.random(in: 0...UInt32.max, using: &numbers) | 0xff00_0000
        }
        let entries = palette.flatMap { word in (0..<3).map { UInt8(word >> UInt32(8 * $0) & 255) } }
        var png = APNGBuilder(
            width: width, height: height, coding: coding, head: coding.type == 3 ? [APNGBuilder.Chunk("PLTE", entries)] : [])
        var expected: [[UInt32]] = []
        for _ in 0..<2 {
            let samples = (0..<width * height * coding.channels).map { _ in
                Int.random(in: 0...(1 << coding.depth) - 1, using: &numbers)
            }
            png.add(Frame(width: width, height: height, samples: samples)) { $0.parts = 3 }
            expected.append(
                stride(from: 0, to: samples.count, by: coding.channels).map {
                    let word = word(Array(samples[$0..<$0 + coding.channels]), coding, palette)
                    return word >> 24 == 0 ? 0 : word
                })
        }
        #expect(try Animation.compose(png.finish()).canvases == expected)
    }

    @Test func colorsAreTransparentWhereTheFileSaysSo() throws {
        let palette = APNGBuilder.Chunk("PLTE", [255, 0, 0, 0, 255, 0])
        var paletted = APNGBuilder(
            width: 2, height: 1, coding: .init(type: 3), head: [palette, APNGBuilder.Chunk("tRNS", [128])])
        paletted.add(Frame(width: 2, height: 1, samples: [0, 1]))
        let composed = try Animation.compose(paletted.finish())
        #expect(composed.canvases == [[0x8000_00ff, Word.green]] && composed.summary.hasAlpha)
        var grey = APNGBuilder(width: 2, height: 1, coding: .init(type: 0, depth: 4), head: [.init("tRNS", [0, 5])])
        grey.add(Frame(width: 2, height: 1, samples: [5, 15]))
        #expect(try Animation.compose(grey.finish()).canvases == [[0, Word.white]])
        var plain = APNGBuilder(width: 2, height: 1, coding: .init(type: 2))
        plain.add(Frame(width: 2, height: 1, samples: [255, 0, 0, 0, 255, 0]))
        #expect(try !Animation.compose(plain.finish()).summary.hasAlpha)
    }

    @Test(
        arguments: [
            ("PLTE", 0, 2), ("PLTE", 4, 2), ("PLTE", 3000, 2), ("PLTE", 3000, 6), ("tRNS", 3000, 2), ("tRNS", 6, 6),
            ("tRNS", 2, 2), ("tRNS", 2, 4), ("tRNS", 1, 0),
        ]) func chunksOfColorsThatHaveAnImpossibleLengthAreIgnored(_ type: String, _ length: Int, _ colorType: Int) throws
    {
        let coding = APNGBuilder.Coding(type: colorType)
        let head = [APNGBuilder.Chunk(type, Array(repeating: 0, count: length))]
        var png = APNGBuilder(width: 2, height: 1, coding: coding, head: head)
        var plain = APNGBuilder(width: 2, height: 1, coding: coding)
        let frame = Frame(width: 2, height: 1, samples: Array(repeating: 255, count: 2 * coding.channels))
        png.add(frame)
        plain.add(frame)
        let (read, expected) = try (Animation.compose(png.finish()), Animation.compose(plain.finish()))
        #expect(read.canvases == expected.canvases && read.summary.hasAlpha == expected.summary.hasAlpha)
    }

    // MARK: Flaws

    @Test func aFileThatBreaksOffKeepsItsWholeFrames() throws {
        var png = builder()
        png.add(full(Word.red))
        let first = png.finish().count - 12
        png.add(full(Word.green))
        let whole = png.finish()
        for count in first..<whole.count - 12 {
            let composed = try Animation.compose(Array(whole.prefix(count)))
            #expect(composed.canvases == [spread(Word.red)], "\(count)")
            #expect(composed.summary.ending == .brokenOff)
        }
        // A missing end marker is no loss.
        #expect(try Animation.compose(Array(whole.prefix(whole.count - 12))).canvases.count == 2)
        for count in [8, 20, 40, 90, first - 20] {
            #expect(throws: TranscodeError.incomplete(.apng), "\(count)") {
                _ = try Converted(Array(whole.prefix(count)) + [], as: .png) { _ in }
            }
        }
    }

    /// Changes a file of three frames; what is left of it.
    private func frames(_ change: (inout APNGBuilder) -> Void) throws -> Int {
        var png = builder()
        for color in [Word.red, Word.green, Word.blue] { png.add(full(color)) }
        change(&png)
        return try Animation.compose(png.finish()).canvases.count
    }

    @Test func aDamagedChunkEndsTheAnimation() throws {
        // IHDR, acTL, fcTL, IDAT, fcTL, fdAT, fcTL, fdAT
        #expect(try frames { _ in } == 3)
        #expect(try frames { $0.chunks[6].isSound = false } == 2)
        #expect(try frames { $0.chunks[6].data[3] += 1 } == 2)
        #expect(try frames { $0.chunks[7].data[3] += 1 } == 2)
        #expect(try frames { $0.chunks.swapAt(4, 6) } == 1)
        #expect(try frames { $0.chunks.insert($0.chunks[6], at: 6) } == 2)
        #expect(try frames { $0.chunks[6].data[24] = 3 } == 2)
        #expect(try frames { $0.chunks[6].data[25] = 2 } == 2)
        // A frame beyond the canvas, and one without size.
        #expect(try frames { $0.chunks[6].data[15] = 1 } == 2)
        #expect(try frames { $0.chunks[6].data[7] = 0 } == 2)
        // Chunks that nobody knows, and damaged ones that nobody reads.
        #expect(try frames { $0.chunks.insert(.init("xxXx", [1, 2]), at: 5) } == 3)
        #expect(
            try frames { png in
                var text = APNGBuilder.Chunk("tEXt", [1])
                text.isSound = false
                png.chunks.insert(text, at: 3)
            } == 3)
    }

    @Test func aWrongChecksumOfLaterFramesIsNotSeen() throws {
        #expect(try frames { $0.chunks[5].isSound = false } == 3)
        #expect(try frames { $0.chunks[7].isSound = false } == 3)
    }

    @Test func aControlWithoutPixelsIsReplacedByTheNext() throws {
        var png = builder()
        png.add(full(Word.red))
        png.addControl(Frame(width: 1, height: 1, word: Word.white))
        png.add(full(Word.green)) { $0.delay = (7, 10) }
        png.addControl(Frame(width: 1, height: 1, word: Word.white))
        let composed = try Animation.compose(png.finish())
        #expect(composed.canvases == [spread(Word.red), spread(Word.green)])
        #expect(composed.summary.delays == [10, 70] && composed.summary.ending == .complete)
    }

    @Test func pixelsOfThePNGItselfAfterAnotherChunkEndTheAnimation() throws {
        #expect(try frames { $0.chunks.insert($0.chunks[3], at: 5) } == 1)
        #expect(
            try frames {
                $0.chunks.insert(.init("tEXt", [65, 0]), at: 4)
                $0.chunks.insert($0.chunks[3], at: 5)
            } == 1)
    }

    // MARK: zlib streams

    /// An APNG of two frames with the same pixels, whose zlib streams are changed.
    private func compressed(_ stream: [UInt8], _ change: (inout [UInt8]) -> Void) -> [UInt8] {
        var stream = stream
        change(&stream)
        var png = APNGBuilder(width: 64, height: 256)
        for _ in 0..<2 { png.add(stream, width: 64, height: 256) }
        return png.finish()
    }

    /// 64 × 256 pixels, compressed by zlib with matches that reach 32 kB back.
    private func noise() -> (words: [UInt32], stream: [UInt8]) {
        var numbers = SeededNumbers(seed: 7)
        let rows: [[UInt32]] = (0..<100).map { _ in
            (0..<64).map { _ in UInt32.random(in: 0...UInt32.max, using: &numbers) | Word.black }
        }
        let words: [UInt32] = (0..<256).flatMap { rows[$0 % 100] }
        var lines: [UInt8] = []
        for y in 0..<256 {
            lines.append(0)
            for word in rows[y % 100] { lines += (0..<4).map { UInt8(truncatingIfNeeded: word >> UInt32(8 * $0)) } }
        }
        return (words, ZlibStream.compressed(lines))
    }

    @Test func aZlibHeaderThatNamesTooSmallAWindowIsNotBelieved() throws {
        let (words, stream) = noise()
        for window in UInt8(0)...7 {
            let png = compressed(stream) {
                $0[0] = window << 4 | 8
                $0[1] = UInt8(31 - Int($0[0]) * 256 % 31)
            }
            #expect(try Animation.compose(png).canvases == [words, words], "\(window)")
        }
        // No such windows.
        #expect(throws: TranscodeError.corrupt(.apng, .unreadableFrame)) {
            try Converted(compressed(stream) { ($0[0], $0[1]) = (0x88, 0x1c) }, as: .png) { _ in }
        }
    }

    @Test func anAdler32IsNeitherVerifiedNorNeeded() throws {
        let (words, stream) = noise()
        for change in [
            { $0[$0.count - 1] ^= 1 }, { $0.removeLast(4) }, { $0.removeLast(1) }, { $0 += [1, 2, 3, 4, 5] },
            {
                $0[$0.count - 1] ^= 1
                $0 += [UInt8](repeating: 7, count: 5000)
            },
        ] as [(inout [UInt8]) -> Void] {
            #expect(try Animation.compose(compressed(stream, change)).canvases == [words, words])
        }
    }

    @Test func aStreamThatLacksPixelsIsNoWholeFrame() throws {
        let (words, stream) = noise()
        let part = Array(stream.prefix(stream.count - 300))
        var png = APNGBuilder(width: 64, height: 256)
        for stream in [stream, part] { png.add(stream, width: 64, height: 256) }
        let composed = try Animation.compose(png.finish())
        #expect(composed.canvases == [words])
        #expect(try Converted(png.finish()).result.isBrokenOff)
    }

    // MARK: Palettes

    @Test func theFirstTransparentColoursAfterThePaletteCount() throws {
        let palette = APNGBuilder.Chunk("PLTE", [255, 0, 0, 0, 255, 0])
        let other = APNGBuilder.Chunk("PLTE", [0, 0, 255, 0, 0, 255])
        func transparent(_ alpha: UInt8) -> APNGBuilder.Chunk { .init("tRNS", [alpha]) }
        func first(_ head: [APNGBuilder.Chunk]) throws -> UInt32 {
            var png = APNGBuilder(width: 2, height: 1, coding: .init(type: 3), head: head)
            png.add(Frame(width: 2, height: 1, samples: [0, 1]))
            return try Animation.compose(png.finish()).canvases[0][0]
        }
        #expect(try first([transparent(128), palette]) == Word.red)
        #expect(try first([transparent(128), palette, transparent(64)]) == 0x4000_00ff)
        #expect(try first([palette, transparent(128), transparent(64)]) == 0x8000_00ff)
        #expect(try first([palette, other]) == Word.red)
        var grey = APNGBuilder(
            width: 2, height: 1, coding: .init(type: 0), head: [.init("tRNS", [0, 5]), .init("tRNS", [0, 15])])
        grey.add(Frame(width: 2, height: 1, samples: [5, 15]))
        #expect(try Animation.compose(grey.finish()).canvases == [[0, 0xff0f_0f0f]])
    }

    @Test(arguments: [1, 2, 4, 8]) func indicesPastThePaletteHaveItsLastColour(_ depth: Int) throws {
        let most = (1 << depth) - 1
        for (alpha, last) in [([], Word.green), ([255, 128], 0x8000_ff00), ([128, 255, 64], Word.green)] as [([UInt8], UInt32)]
        {
            let palette = APNGBuilder.Chunk("PLTE", depth == 1 ? [0, 255, 0] : [255, 0, 0, 0, 255, 0])
            let transparent = alpha.isEmpty ? [] : [APNGBuilder.Chunk("tRNS", depth == 1 ? [alpha[1]] : alpha)]
            var png = APNGBuilder(width: 2, height: 1, coding: .init(type: 3, depth: depth), head: [palette] + transparent)
            png.add(Frame(width: 2, height: 1, samples: [most, most]))
            #expect(try Animation.compose(png.finish()).canvases == [[last, last]], "\(alpha)")
        }
    }

    // MARK: Limits

    @Test func pixelsOfLessThanAByteAreCountedByTheirBytes() throws {
        func blank(_ coding: APNGBuilder.Coding) -> [UInt8] {
            var png = APNGBuilder(width: 1024, height: 1024, coding: coding)
            let line = [UInt8](repeating: 0, count: 1 + 1024 * coding.depth / 8)
            let stream = ZlibStream.compressed((0..<1024).flatMap { _ in line })
            for _ in 0..<12 { png.add(stream, width: 1024, height: 1024) }
            return png.finish()
        }
        for depth in [1, 2, 4] {
            let summary = try Animation.compose(blank(.init(type: 0, depth: depth))).summary
            #expect(summary.delays.count == 12 && summary.ending == .complete)
            #expect(try Converted(blank(.init(type: 0, depth: depth)), as: .png) { $0.frame = .number(11) }.result.frames == 12)
        }
        #expect(throws: TranscodeError.self) {
            try Animation.compose(
                blank(.init(type: 0, depth: 1)), limits: MediaLimits(canvasPixels: 1_100_000, pixelsPerByte: 500))
        }
    }

    @Test func factsCountTheFramesThatOutputsHave() throws {
        var png = builder()
        for color in [Word.red, Word.green, Word.blue] { png.add(full(color)) }
        #expect(try Converted(png.finish(), as: .facts) { _ in }.result.frames == 3)
        // The data of the second frame is no zlib stream.
        png.chunks[5].data[4] ^= 0xff
        #expect(try Converted(png.finish(), as: .facts) { _ in }.result.frames == 1)
        #expect(try Converted(png.finish()).result.frames == 1)
    }

    @Test func aFlawBeforeTheFirstFrameIsAnError() {
        for index in [2, 3] {
            #expect(throws: TranscodeError.corrupt(.apng, .unreadableFrame), "\(index)") {
                try frames { $0.chunks[index].isSound = false }
            }
        }
        #expect(throws: TranscodeError.corrupt(.apng, .unreadableFrame)) { try frames { $0.chunks[3].data[0] ^= 0xff } }
        #expect(throws: TranscodeError.corrupt(.apng, .header)) { try frames { $0.chunks[0].isSound = false } }
        // Neither side may be 0 or have 32 bits.
        for (place, byte) in [(3, 0), (7, 0), (0, 0x80), (4, 0x80)] as [(Int, UInt8)] {
            #expect(throws: TranscodeError.corrupt(.apng, .header), "\(place)") {
                try frames { $0.chunks[0].data[place] = byte }
            }
        }
        // No such bit depth.
        #expect(throws: TranscodeError.corrupt(.apng, .unreadableFrame)) { try frames { $0.chunks[0].data[8] = 3 } }
        #expect(throws: TranscodeError.corrupt(.apng, .noFrames)) { try frames { $0.chunks.removeLast(6) } }
    }

    @Test func moreFramesThanAnnouncedAreIgnored() throws {
        var png = builder()
        for color in [Word.red, Word.green, Word.blue] { png.add(full(color)) }
        #expect(try Animation.compose(png.finish(frames: 2)).canvases.count == 2)
        #expect(try Animation.compose(png.finish(frames: 9)).canvases.count == 3)
    }

    @Test func theFirstSoundAnimationControlCounts() throws {
        var png = builder(plays: 3)
        for color in [Word.red, Word.green] { png.add(full(color)) }
        png.chunks.insert(.init("acTL", APNGBuilder.number(1) + APNGBuilder.number(7)), at: 2)
        let first = try Animation.compose(png.finish())
        #expect(first.summary.loopCount == 2 && first.canvases.count == 2)
        png.chunks[1].isSound = false
        let second = try Animation.compose(png.finish())
        #expect(second.summary.loopCount == 6 && second.canvases.count == 1)
    }

    @Test func aPNGWithoutAnimationIsRefused() throws {
        var plain = builder(plays: nil)
        plain.addPicture(full(Word.red))
        var late = plain
        late.chunks.append(.init("acTL", APNGBuilder.number(1) + APNGBuilder.number(0)))
        var empty = builder()
        empty.add(full(Word.red))
        var endless = builder(plays: 1 << 31)
        endless.add(full(Word.red))
        for png in [plain.finish(), late.finish(), empty.finish(frames: 0), endless.finish()] {
            #expect(throws: TranscodeError.still(.apng)) { try Converted(png) }
            #expect(try Animation.compose(png).canvases == [spread(Word.red)])
        }
        #expect(TranscodeError.still(.apng).description == "This PNG has no animation.")
    }

    @Test func limitsHoldBeforeAnythingIsAllocated() throws {
        let huge = builder(width: 0x7fff_ffff, height: 0x7fff_ffff)
        #expect(throws: TranscodeError.tooLarge(.side, value: 0x7fff_ffff, maximum: 4096)) {
            try Animation.compose(huge.finish())
        }
        let wide = builder(width: 4000, height: 4000)
        #expect(throws: TranscodeError.tooLarge(.canvasPixels, value: 16_000_000, maximum: 8_300_000)) {
            try Animation.compose(wide.finish())
        }
        var png = builder()
        for _ in 0..<3 { png.add(full(Word.red)) { $0.delay = (3, 2) } }
        #expect(throws: TranscodeError.tooLarge(.frames, value: 3, maximum: 2)) {
            try Animation.compose(png.finish(), limits: MediaLimits(frames: 2))
        }
        #expect(throws: TranscodeError.tooLarge(.duration, value: 300, maximum: 299)) {
            try Animation.compose(png.finish(), limits: MediaLimits(duration: 299))
        }
        #expect(throws: TranscodeError.tooLarge(.totalPixels, value: 24, maximum: 20)) {
            try Animation.compose(png.finish(), limits: MediaLimits(totalPixels: 20))
        }
    }

    @Test func translucentPixelsAreLaidOnTheBackground() throws {
        var png = APNGBuilder(width: 16, height: 16)
        png.add(full(Word.halfBlue, width: 16, height: 16))
        let black = try Converted(png.finish()) { $0.background = RGB(red: 0, green: 0, blue: 0) }
        let color = try black.color(0, x: 8, y: 8)
        #expect(color[0] < 6 && color[1] < 6 && abs(color[2] - 128) < 6, "\(color)")
        let poster = try Converted(png.finish(), as: .jpg) { $0.background = .white }.picture()
        #expect(abs(Int(poster[0] & 255) - 127) < 6 && poster[0] >> 16 & 255 > 249)
        let clear = try Converted(png.finish(), as: .png) { _ in }.picture()
        #expect(clear[0] == Word.halfBlue)
    }
}

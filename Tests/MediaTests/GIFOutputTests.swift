import TestSupport
import Testing

@testable import Media

@Suite("A GIF in fewer bytes shows the same pictures at the same times", .timeLimit(.minutes(10))) struct GIFOutputTests {
    private func convert(
        _ source: [UInt8], _ change: (inout TranscodeOptions) -> Void = { _ in }
    ) throws -> Converted { try Converted(source, as: .gif, change) }

    private static func copy(_ source: [UInt8], _ summary: AnimationSummary, plays: Int?) -> [UInt8]? {
        source.withUnsafeBytes { GIFSourceCopy.file($0, summary, plays: plays) }
    }

    @Test func everyPictureAndTimeIsExact() throws {
        for (name, source) in ShownPictures.matrix() {
            let gif = try convert(source)
            let shown = try ShownPictures(source)
            if shown.pictures.count == 1 {
                #expect(gif.result.duration == 0 && gif.result.samples == 1, "\(name)")
                #expect(try Animation.compose(gif.bytes).canvases == [shown.pictures[0].words], "\(name)")
            } else {
                #expect(try ShownPictures(gif.bytes) == shown, "\(name)")
                #expect(Double(gif.result.duration * 10) == shown.end, "\(name)")
            }
        }
    }

    /// The source's own image data, if they are smaller: what is left out pays for the headers that they may lack.
    @Test func aFileIsNotLargerThanItsSource() throws {
        for (name, source) in ShownPictures.matrix() {
            let shown = try ShownPictures(source)
            guard let copy = Self.copy(source, try Composing.summary(source), plays: nil) else { continue }
            if shown.pictures.count > 1 { #expect(try ShownPictures(copy) == shown, "\(name)") }
            #expect(try convert(source).bytes.count <= copy.count, "\(name)")
        }
    }

    /// A copy of the source is smaller here: its encoder begins a new table where the pattern changes.
    @Test func aCopyOfARepeatedPictureHasItsTimes() throws {
        var state: UInt32 = 1
        func number(below bound: Int) -> Int {
            state = state &* 1_103_515_245 &+ 12345
            return Int(state >> 16) % bound
        }
        var pixels: [UInt8] = []
        var tiles: [[UInt8]] = []
        while pixels.count < 256 * 256 {
            if pixels.count % 16384 == 0 { tiles = (0..<20).map { _ in (0..<16).map { _ in UInt8(number(below: 4)) } } }
            pixels += tiles[number(below: tiles.count)]
        }
        var builder = GIFBuilder(width: 256, height: 256)
        builder.add(GIFBuilder.Frame(width: 256, height: 256, pixels: pixels))
        builder.add(GIFBuilder.Frame(width: 1, height: 1, color: pixels[0]))
        let source = builder.finish()
        let gif = try convert(source)
        #expect(gif.bytes.count <= source.count && gif.result.samples == 2 && gif.result.duration == 20)
        #expect(try inspectionFlaw(gif.bytes, OutputClaim(Transcoder(output: .gif), gif.result)) == nil)
    }

    @Test func aCopyLeavesOutCommentsAndKeepsWhatIsShown() throws {
        var builder = GIFBuilder(width: 12, height: 9, palette: nil, version: "87a")
        builder.addExtension(0xfe, Array("a comment".utf8))
        builder.addLoop(3)
        let palette: [GIFBuilder.Color] = [(200, 0, 0), (0, 200, 0), (0, 0, 200), (9, 9, 9)]
        builder.add(GIFBuilder.Frame(width: 12, height: 9, color: 1), localPalette: palette) { $0.delay = nil }
        builder.addExtension(0xff, Array("XMP".utf8))
        builder.add(GIFBuilder.Frame(width: 5, height: 4, color: 2), localPalette: palette) {
            ($0.x, $0.y, $0.disposal, $0.delay, $0.transparent) = (7, 5, 4, 1, 3)
        }
        builder.add(GIFBuilder.Frame(width: 2, height: 2, color: 0), localPalette: palette) { $0.disposal = 7 }
        let source = builder.finish()
        let summary = try Composing.summary(source)
        let copy = try #require(Self.copy(source, summary, plays: 4))
        #expect(try ShownPictures(copy) == ShownPictures(source))
        #expect(try Composing.summary(copy).loopCount == 3)
        #expect(copy.starts(with: "GIF89a".utf8) && !String(decoding: copy, as: UTF8.self).contains("comment"))
        // Cut off, with something behind it, or interlaced: no copy.
        #expect(Self.copy(Array(source.dropLast(4)), summary, plays: 4) == nil)
        var other = GIFBuilder(width: 12, height: 9)
        other.add(GIFBuilder.Frame(width: 12, height: 9, color: 1)) { $0.isInterlaced = true }
        let interlaced = other.finish()
        #expect(Self.copy(interlaced, try Composing.summary(interlaced), plays: 1) == nil)
    }

    /// A copy of the source would be smaller, but its last frame lacks a row.
    @Test func dataThatLackPixelsAreNotCopied() throws {
        var numbers = SeededNumbers(seed: 9)
        var builder = GIFBuilder(width: 40, height: 32)
        for rows in [32, 31] {
            let noise = (0..<40 * rows).map { _ in UInt8.random(in: 0...7, using: &numbers) }
            builder.add(GIFBuilder.Frame(width: 40, height: 32, pixels: noise))
        }
        let source = builder.finish()
        func isWhole(_ file: [UInt8]) throws -> Bool {
            try file.withUnsafeBytes { try GIFSourceCopy.isWhole($0, limits: MediaLimits()) }
        }
        let gif = try convert(source)
        #expect(try !isWhole(source))
        #expect(try isWhole(gif.bytes))
        #expect(try ShownPictures(gif.bytes) == ShownPictures(source))
    }

    /// Every beginning of a GIF, and a GIF with each byte changed: a copy, or none.
    @Test func aDamagedSourceIsNoTrap() throws {
        let source = GIFBuilder.animation(frames: 3, width: 9, height: 7)
        let summary = try Composing.summary(source)
        for index in source.indices {
            _ = Self.copy(Array(source[..<index]), summary, plays: nil)
            for value: UInt8 in [0, 0x2c, 0x3b, 0x7f, 0xff] {
                var damaged = source
                damaged[index] = value
                _ = Self.copy(damaged, summary, plays: nil)
            }
        }
    }

    /// Squares that come and go over a background, opaque or transparent: what a frame leaves behind is cleared or restored.
    @Test(arguments: [false, true]) func whatAFrameLeavesBehindIsNotCodedAgain(_ isTransparent: Bool) throws {
        var numbers = SeededNumbers(seed: 9)
        var builder = GIFBuilder(width: 80, height: 60)
        builder.addLoop(0)
        let ground = (0..<80 * 60).map { _ in UInt8.random(in: 0...6, using: &numbers) }
        if !isTransparent { builder.add(GIFBuilder.Frame(width: 80, height: 60, pixels: ground)) { $0.disposal = 1 } }
        for index in 0..<8 {
            let noise = (0..<400).map { _ in UInt8.random(in: 0...6, using: &numbers) }
            builder.add(GIFBuilder.Frame(width: 20, height: 20, pixels: noise)) {
                ($0.x, $0.y) = (index * 37 % 60, index * 11 % 40)
                $0.disposal = isTransparent ? 2 : 3
                $0.transparent = 7
            }
        }
        let source = builder.finish()
        let gif = try convert(source)
        #expect(try ShownPictures(gif.bytes) == ShownPictures(source))
        #expect(gif.bytes.count <= source.count * 21 / 20, "\(gif.bytes.count) of \(source.count)")
        #expect(gif.result.isTransparent == isTransparent)
    }

    @Test(arguments: [(8, 8, false), (8, 5, true), (5, 8, true), (5, 5, true)])
    func whatTheFirstFrameLeavesFreeIsTransparent(_ width: Int, _ height: Int, _ isTransparent: Bool) throws {
        var builder = GIFBuilder(width: 8, height: 8)
        for color: UInt8 in [1, 2] { builder.add(GIFBuilder.Frame(width: width, height: height, color: color)) }
        #expect(try convert(builder.finish()).result.isTransparent == isTransparent)
    }

    /// Every frame has 256 colours of its own, so that none is left for transparent pixels.
    @Test func framesOf256ColoursAreExact() throws {
        var builder = GIFBuilder(width: 32, height: 16, palette: nil)
        for frame in 0..<3 {
            let palette = (0..<256).map { (UInt8($0), UInt8($0 * 7 & 255), UInt8(frame * 40)) as GIFBuilder.Color }
            let pixels = (0..<512).map { UInt8($0 * (frame * 2 + 1) & 255) }
            builder.add(GIFBuilder.Frame(width: 32, height: 16, pixels: pixels), localPalette: palette) {
                $0.minimumCodeSize = 8
            }
        }
        let source = builder.finish()
        #expect(try ShownPictures(try convert(source).bytes) == ShownPictures(source))
    }

    @Test(
        "It plays as often as the source does",
        arguments: [
            (0, 1, 0), (nil, 1, nil), (1, 1, 1), (3, 2, 1), (nil, 3, nil), (65_535, 1, 65_535),
        ] as [(Int?, Int, Int?)])
    func itPlaysAsOftenAsTheSource(_ loop: Int?, _ rounds: Int, _ repetitions: Int?) throws {
        let source = WebMTests.sprite([10, 20], loop: loop)
        let gif = try convert(source) { $0.time.loops = rounds }
        let composed = try Animation.compose(gif.bytes)
        #expect(composed.summary.loopCount == repetitions)
        #expect(composed.summary.delays == (0..<rounds).flatMap { _ in [10, 20] })
        let pictures = try Animation.compose(source).canvases
        #expect(composed.canvases == (0..<rounds).flatMap { _ in pictures })
    }

    @Test(arguments: [1000, 1500, 3000, 333, 10_000, 100]) func timesAreRoundedAndNeverTooShort(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 2, 2, 50]
        let gif = try convert(WebMTests.sprite(delays)) { $0.time.speed = speed }
        let made = try Animation.compose(gif.bytes).summary.delays
        #expect(made.allSatisfy { $0 > 1 })
        #expect(abs(Double(made.reduce(0, +)) - Double(delays.reduce(0, +) * 1000) / Double(speed)) <= 0.5)
    }

    @Test func aPictureMayBeShownForHours() throws {
        var builder = APNGBuilder(width: 8, height: 8)
        for (index, word) in [Word.blue, Word.red, Word.clear, Word.red].enumerated() {
            builder.add(APNGBuilder.Frame(width: 8, height: 8, word: word)) { $0.delay = (index == 1 ? 4000 : 20, 1) }
        }
        let gif = try convert(builder.finish())
        let shown = try ShownPictures(gif.bytes)
        #expect(shown.starts == [0, 20_000, 4_020_000, 4_040_000] && shown.end == 4_060_000)
        #expect(shown.pictures.map { $0.words[9] } == [Word.blue, Word.red, Word.clear, Word.red])
        #expect(try inspectionFlaw(gif.bytes, OutputClaim(Transcoder(output: .gif), gif.result)) == nil)
    }

    @Test func moreColoursThanAPaletteAreReducedToSimilarOnes() throws {
        var builder = WebPBuilder(width: 64, height: 48, hasAlpha: false)
        for frame in 0..<3 {
            let words = (0..<64 * 48).map { index -> UInt32 in
                let (x, y) = (UInt32(index % 64 + frame), UInt32(index / 64))
                return 0xff00_0000 | (x * 3) << 16 | (y * 4) << 8 | (x + y)
            }
            builder.add(WebPBuilder.Frame(width: 64, height: 48, words: words))
        }
        let film = builder.finish()
        let gif = try ShownPictures(try convert(film).bytes)
        let shown = try ShownPictures(film)
        #expect(gif.starts == shown.starts)
        for (picture, other) in zip(shown.pictures, gif.pictures) {
            var error = 0
            for (one, two) in zip(picture.words, other.words) {
                for shift in [0, 8, 16] { error += abs(Int(one >> shift & 255) - Int(two >> shift & 255)) }
            }
            #expect(error / picture.words.count < 12, "\(error / picture.words.count)")
        }
    }

    /// Dark pictures have many colours close to one another.
    @Test func similarColoursUseTheWholePalette() throws {
        let words = (0..<128 * 128).map { index -> UInt32 in
            let (x, y) = (UInt32(index % 128), UInt32(index / 128))
            return 0xff00_0000 | (x / 4) << 16 | (y / 4) << 8 | (x + y) / 8
        }
        var builder = WebPBuilder(width: 128, height: 128, hasAlpha: false)
        builder.add(WebPBuilder.Frame(width: 128, height: 128, words: words))
        builder.add(WebPBuilder.Frame(width: 128, height: 128, words: words.reversed()))
        let picture = try ShownPictures(try convert(builder.finish()).bytes).pictures[0]
        #expect(Set(picture.words).count > 240)
        var error = 0
        for (one, two) in zip(try ShownPictures(builder.finish()).pictures[0].words, picture.words) {
            for shift in [0, 8, 16] {
                let difference = Int(one >> shift & 255) - Int(two >> shift & 255)
                error += difference * difference
            }
        }
        // Pillow's median cut: 0.41.
        #expect(Double(error) / Double(3 * words.count) < 0.5)
    }

    @Test func aQualityMakesAFilmSmaller() throws {
        let palette: [GIFBuilder.Color] = (0..<64).map { (level: Int) -> GIFBuilder.Color in
            let grey = UInt8(level * 4)
            return (grey, grey, grey)
        }
        var numbers = SeededNumbers(seed: 2)
        var builder = GIFBuilder(width: 64, height: 48, palette: palette)
        for frame in 0..<4 {
            let pixels: [UInt8] = (0..<64 * 48).map { (index: Int) -> UInt8 in
                let noise = Int.random(in: 0...5, using: &numbers)
                return UInt8(min(63, (index % 64 + frame) / 2 + noise))
            }
            builder.add(GIFBuilder.Frame(width: 64, height: 48, pixels: pixels)) { $0.minimumCodeSize = 6 }
        }
        let film = builder.finish()
        var sizes: [Int] = []
        for quality in [nil, 100, 80, 30, 1] as [Int?] {
            sizes.append(try convert(film) { $0.chosenQuality = quality }.bytes.count)
        }
        #expect(sizes[0] == sizes[1] && sizes == sizes.sorted(by: >) && Set(sizes).count == 4, "\(sizes)")
        let lossy = try ShownPictures(try convert(film) { $0.chosenQuality = 60 }.bytes).pictures
        let exact = try ShownPictures(film).pictures
        #expect(lossy.count == exact.count)
        for (picture, other) in zip(exact, lossy) {
            for index in picture.words.indices {
                let distance = Int(picture.words[index] & 255) - Int(other.words[index] & 255)
                if other.words[index] < PixelFormat.opaque || 3 * distance * distance > 800 { Issue.record("\(distance)") }
            }
        }
    }

    @Test func theBytesDoNotDependOnThreads() throws {
        let source = GIFBuilder.noise(frames: 4, width: 64, height: 64)
        let files = try [1, 2, 4].map { try Converted(source, Transcoder(output: .gif, threads: $0)).bytes }
        #expect(Set(files).count == 1)
    }

    /// Strings of every length, tables that fill up, and indices of every size come back from the decoder as they were.
    @Test(arguments: 1...8) func compressedIndicesAreDecoded(_ bits: Int) throws {
        var numbers = SeededNumbers(seed: UInt64(bits))
        for (count, run) in [(1, 1), (2, 2), (300, 9), (70_000, 1), (70_000, 40), (70_000, 70_000)] {
            var indices: [UInt8] = []
            while indices.count < count {
                let value = UInt8.random(in: 0...UInt8((1 << bits) - 1), using: &numbers)
                indices += Array(repeating: value, count: min(Int.random(in: 1...run, using: &numbers), count - indices.count))
            }
            for share in [0, 3] {
                let free = indices.map { _ in UInt8(share > 0 && Int.random(in: 0..<share, using: &numbers) == 0 ? 1 : 0) }
                var compressor = try GIFCompressor(pixels: count)
                indices.withUnsafeBufferPointer { indices in
                    free.withUnsafeBufferPointer { free in
                        guard let indices = indices.baseAddress, let free = free.baseAddress else { return }
                        compressor.compress(
                            GIFCompressor.Pixels(
                                indices: indices, mayBeTransparent: free, count: count, transparent: share > 0 ? 0 : nil),
                            minimumCodeSize: max(2, bits))
                    }
                }
                let decoded = try decode(Array(compressor.bytes), count: count)
                for index in indices.indices where decoded[index] != indices[index] {
                    if free[index] == 0 || decoded[index] != 0 { Issue.record("\(bits) \(count) \(run) \(index)") }
                }
            }
        }
    }

    /// The indices of image data: the minimum code size, sub-blocks and a terminator.
    private func decode(_ data: [UInt8], count: Int) throws -> [UInt8] {
        var decoder = try LZWDecoder()
        var output = [UInt8](repeating: 0xee, count: count + LZWDecoder.slack)
        var decoded = 0
        output.withUnsafeMutableBufferPointer { output in
            guard let base = output.baseAddress else { return }
            decoder.begin(minimumCodeSize: Int(data[0]), output: base, pixels: count)
            var position = 1
            while data[position] > 0 {
                let end = position + 1 + Int(data[position])
                data[position + 1..<end].withUnsafeBufferPointer { decoder.decode($0) }
                position = end
            }
            #expect(position == data.count - 1)
            decoded = decoder.count
        }
        #expect(decoded == count)
        return output
    }
}

import TestSupport
import Testing

@testable import Media

/// The pictures of animations and the times at which they are shown, for the formats of browsers' images.
struct ShownPictures: Equatable {
    /// Each picture that differs from the one before, with its start in milliseconds.
    private(set) var pictures: [(start: Double, words: [UInt32])] = []
    /// The end of the last one, in milliseconds.
    private(set) var end = 0.0

    init(_ file: [UInt8], limits: MediaLimits = MediaLimits()) throws {
        let composed = try Animation.compose(file, limits: limits)
        let timescale = composed.summary.timescale
        for (words, delay) in zip(composed.canvases, composed.summary.delays) {
            if pictures.last?.words != words { pictures.append((end, words)) }
            end += Double(FrameClock.shownDelay(delay, timescale: timescale) * 1000) / Double(timescale)
        }
    }

    var starts: [Double] { pictures.map(\.start) }

    static func == (one: ShownPictures, other: ShownPictures) -> Bool {
        one.starts == other.starts && one.end == other.end && one.pictures.map(\.words) == other.pictures.map(\.words)
    }

    /// Animations that use each feature of a GIF, by name.
    static func matrix() -> [(name: String, gif: [UInt8])] {
        var all: [(String, [UInt8])] = [
            ("moving", GIFBuilder.animation(frames: 6, width: 33, height: 21)),
            ("noise", GIFBuilder.noise(frames: 4, width: 30, height: 17)),
            ("same", GIFBuilder.noise(frames: 1, width: 9, height: 9)), ("sprite", WebMTests.sprite()),
            ("one pixel", GIFBuilder.animation(frames: 3, width: 1, height: 1)),
        ]
        for disposal in 0...3 {
            for transparent in [nil, 0, 3] as [UInt8?] {
                var numbers = SeededNumbers(seed: UInt64(disposal * 7 + Int(transparent ?? 5)))
                var builder = GIFBuilder(width: 25, height: 18)
                builder.addLoop(disposal)
                for index in 0..<7 {
                    let (width, height) = (Int.random(in: 1...25, using: &numbers), Int.random(in: 1...18, using: &numbers))
                    let pixels = (0..<width * height).map { _ in UInt8.random(in: 0...4, using: &numbers) }
                    builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) {
                        ($0.x, $0.y) = (25 - width, (18 - height) / 2)
                        $0.delay = [0, 1, 2, 3, 10, 77, 400][index]
                        $0.disposal = index % 3 == 2 ? (disposal + 1) % 4 : disposal
                        $0.transparent = transparent
                        $0.isInterlaced = index == 4
                    }
                }
                all.append(("disposal \(disposal), transparent \(transparent.map(String.init) ?? "none")", builder.finish()))
            }
        }
        return all
    }
}

@Suite("An animated WebP shows the GIF's pictures at its times", .timeLimit(.minutes(10))) struct AnimatedWebPTests {
    private func convert(
        _ gif: [UInt8], _ change: (inout TranscodeOptions) -> Void = { _ in }
    ) throws -> Converted { try Converted(gif, as: .awebp, change) }

    @Test func everyPictureAndTimeIsExact() throws {
        for (name, gif) in ShownPictures.matrix() {
            let webp = try convert(gif)
            let shown = try ShownPictures(gif)
            if shown.pictures.count == 1 {
                #expect(webp.result.duration == 0 && webp.result.samples == 1, "\(name)")
                #expect(try Animation.compose(webp.bytes).canvases == [shown.pictures[0].words], "\(name)")
            } else {
                #expect(try ShownPictures(webp.bytes) == shown, "\(name)")
                #expect(Double(webp.result.duration) == shown.end && webp.result.timescale == 1000, "\(name)")
            }
        }
    }

    /// A source whose pixels are neither opaque nor transparent, which are not blended over others.
    @Test func translucentPixelsAreExact() throws {
        var builder = APNGBuilder(width: 6, height: 4)
        for (index, word) in [Word.red, 0x8000_ff00, Word.halfBlue, Word.clear, 0x0100_0001].enumerated() {
            builder.add(APNGBuilder.Frame(width: 3, height: 2, word: word)) {
                ($0.x, $0.y) = (index % 3, index % 2)
                if index == 0 { ($0.x, $0.y, $0.width, $0.height) = (0, 0, 6, 4) }
                if index == 0 { $0.samples = (0..<24).flatMap { _ in [255, 0, 0, 255] } }
                $0.disposal = index % 3
            }
        }
        let apng = builder.finish()
        #expect(try ShownPictures(try convert(apng).bytes) == ShownPictures(apng))
    }

    /// A translucent pixel that does not change, in a block with others that do, is not blended a second time.
    @Test(arguments: [nil, 60, 20] as [Int?]) func translucentPixelsAreBlendedOnce(_ quality: Int?) throws {
        var numbers = SeededNumbers(seed: 11)
        func noise() -> [UInt32] { (0..<48 * 48).map { _ in UInt32.random(in: 0...0xff_ffff, using: &numbers) } }
        var words = noise()
        for index in words.indices { words[index] |= [0x64, 0xff, 0, 0x80][(index + index / 48) % 4] << 24 }
        for index in words.indices where words[index] >> 24 == 0 { words[index] = 0 }
        var builder = WebPBuilder(width: 48, height: 48)
        for _ in 0..<4 {
            builder.add(WebPBuilder.Frame(width: 48, height: 48, words: words)) { $0.blends = false }
            // Opaque pixels change.
            for (index, word) in noise().enumerated() where words[index] >= 0xff00_0000 && index % 5 == 0 {
                words[index] = 0xff00_0000 | word
            }
        }
        let source = builder.finish()
        let webp = try convert(source) { $0.chosenQuality = quality }
        let (made, expected) = (try Animation.compose(webp.bytes).canvases, try Animation.compose(source).canvases)
        #expect(made.count == expected.count)
        for (picture, other) in zip(made, expected) { #expect(picture.map { $0 >> 24 } == other.map { $0 >> 24 }) }
    }

    @Test(
        "It plays as often as the GIF does",
        arguments: [
            (0, 1, 0), (nil, 1, 1), (1, 1, 2), (3, 2, 2), (nil, 3, 1), (65_535, 1, 65_535),
        ] as [(Int?, Int, Int)])
    func itPlaysAsOftenAsTheGIF(_ loop: Int?, _ rounds: Int, _ plays: Int) throws {
        let webp = try convert(WebMTests.sprite([10, 20], loop: loop)) { $0.time.loops = rounds }
        let summary = try Animation.compose(webp.bytes).summary
        #expect(summary.loopCount == (plays == 1 ? nil : max(0, plays - 1)))
        #expect(summary.delays == (0..<rounds).flatMap { _ in [100, 200] })
        #expect(webp.result.samples == 2 * rounds && webp.result.duration == 300 * rounds)
    }

    /// Browsers show a picture of up to 10 ms for 100 ms, so none of these is.
    @Test(arguments: [1000, 1500, 3000, 333, 10_000, 100]) func timesAreRoundedAndNeverTooShort(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 2, 2, 50]
        let webp = try convert(WebMTests.sprite(delays)) { $0.time.speed = speed }
        let made = try Animation.compose(webp.bytes).summary.delays
        #expect(made.allSatisfy { $0 > 10 })
        let whole = Double(delays.reduce(0, +) * 10_000) / Double(speed)
        #expect(abs(Double(made.reduce(0, +)) - whole) <= 0.5)
        if speed <= 1500 {
            #expect(zip(made, delays).allSatisfy { abs(Double($0) - Double($1 * 10_000) / Double(speed)) <= 1 })
        }
    }

    @Test func aPictureMayBeShownForHours() throws {
        var builder = APNGBuilder(width: 8, height: 8)
        for index in 0..<3 {
            builder.add(APNGBuilder.Frame(width: 8, height: 8, word: index == 1 ? Word.red : Word.blue)) {
                $0.delay = (index == 1 ? 40_000 : 20, 1)
            }
        }
        let webp = try convert(builder.finish())
        let shown = try ShownPictures(webp.bytes)
        #expect(shown.starts == [0, 20_000, 40_020_000] && shown.end == 40_040_000)
        let claim = OutputClaim(Transcoder(output: .awebp), webp.result)
        #expect(webp.result.duration == 40_040_000)
        #expect(try inspectionFlaw(webp.bytes, claim) == nil)
    }

    @Test func optionsOfTimeAndSizeApply() throws {
        let gif = GIFBuilder.animation(frames: 10, width: 48, height: 32, delay: 10)
        let part = try convert(gif) { $0.time = TimeOptions(start: 20, end: 75) }
        #expect(part.result.duration == 550)
        #expect(try Animation.compose(part.bytes).summary.delays.count == 6)
        let slow = try convert(gif) { $0.time.ceiling = 5000 }
        #expect(try Animation.compose(slow.bytes).summary.delays == Array(repeating: 200, count: 5))
        let small = try convert(gif) { $0.size.width = 17 }
        #expect(small.result.width == 17 && small.result.height == 11)
        let large = try convert(gif) { $0.zoom = 3 }
        let (pictures, enlarged) = (try ShownPictures(gif).pictures, try ShownPictures(large.bytes).pictures)
        #expect(large.result.width == 144 && pictures.count == enlarged.count)
        for (picture, zoomed) in zip(pictures, enlarged) {
            for index in zoomed.words.indices {
                let (x, y) = (index % 144 / 3, index / 144 / 3)
                if zoomed.words[index] != picture.words[y * 48 + x] { Issue.record("\(index)") }
            }
        }
        #expect(throws: TranscodeError.startPastEnd(start: 100, duration: 100)) { try convert(gif) { $0.time.start = 100 } }
    }

    /// A film: neighbouring colours, which lossless coding cannot make small.
    private func film() -> [UInt8] {
        var numbers = SeededNumbers(seed: 4)
        var builder = WebPBuilder(width: 64, height: 48, hasAlpha: false)
        for frame in 0..<4 {
            let words = (0..<64 * 48).map { index -> UInt32 in
                let (x, y) = (index % 64 + 2 * frame, index / 64)
                let noise = UInt32.random(in: 0...9, using: &numbers)
                return 0xff00_0000 | (UInt32(x * 3) + noise) << 16 | (UInt32(y * 4) + noise) << 8 | UInt32(x + y)
            }
            builder.add(WebPBuilder.Frame(width: 64, height: 48, words: words))
        }
        return builder.finish()
    }

    @Test func aQualityMakesAFilmSmallerAndLeavesDrawingsExact() throws {
        let film = film()
        let sizes = try [nil, 90, 60, 20].map { quality in try convert(film) { $0.chosenQuality = quality }.bytes.count }
        #expect(sizes == sizes.sorted(by: >) && Set(sizes).count == 4, "\(sizes)")
        let lossy = try ShownPictures(try convert(film) { $0.chosenQuality = 60 }.bytes)
        for (picture, other) in zip(try ShownPictures(film).pictures, lossy.pictures) {
            var error = 0
            for (one, two) in zip(picture.words, other.words) {
                for shift in [0, 8, 16] { error += abs(Int(one >> shift & 255) - Int(two >> shift & 255)) }
            }
            #expect(error / picture.words.count < 30)
        }
        // Flat areas take fewer bytes without loss.
        let drawing = GIFBuilder.animation(frames: 6)
        let both = try [nil, 60].map { quality in try convert(drawing) { $0.chosenQuality = quality }.bytes }
        #expect(both[0] == both[1])
    }

    @Test func theBytesDoNotDependOnThreads() throws {
        let gif = GIFBuilder.noise(frames: 4, width: 64, height: 64)
        let files = try [1, 2, 4].map { try Converted(gif, Transcoder(output: .awebp, threads: $0)).bytes }
        #expect(Set(files).count == 1)
    }

    @Test func aPictureLargerThanTheFormatIsRefused() throws {
        let gif = GIFBuilder.animation(frames: 1, width: 16_384, height: 1)
        #expect(throws: TranscodeError.tooLarge(.side, value: 16_384, maximum: 16_383)) {
            try Converted(gif, Transcoder(output: .awebp, limits: MediaLimits(side: 20_000)))
        }
    }

    @Test func aSourceThatBreaksOffKeepsItsWholeFrames() throws {
        let gif = Array(GIFBuilder.noise(frames: 4, width: 32, height: 32).dropLast(200))
        let webp = try convert(gif)
        #expect(webp.result.isBrokenOff && webp.result.frames == 3)
        #expect(try Animation.compose(webp.bytes).canvases == Array(Animation.compose(gif).canvases.prefix(3)))
    }
}

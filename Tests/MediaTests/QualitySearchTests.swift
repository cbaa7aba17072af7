import TestSupport
import Testing

@testable import Media

@Suite("The quantizer of a codec follows from the quality that H.264 has") struct QualitySearchTests {
    /// A GIF of greys: a textured gradient that moves by some pixels per frame, with one row inverted.
    private static func film(
        width: Int = 96, height: Int = 64, frames: Int, contrast: Int = 1, delay: Int = 10, inverting row: Int? = nil
    ) -> [UInt8] {
        let greys = (0..<64).map { number -> GIFBuilder.Color in
            let level = UInt8(number * 4)
            return (level, level, level)
        }
        var builder = GIFBuilder(width: width, height: height, palette: greys)
        var random = SeededNumbers(seed: 7)
        let texture = (0..<width * height).map { _ in Int.random(in: 0...36, using: &random) }
        for frame in 0..<frames {
            let pixels = (0..<width * height).map { index -> UInt8 in
                let (x, y) = (index % width, index / width)
                let moved = (x + 3 * frame) % width
                let level = min(63, (moved / 2 + y / 8) % 64 * contrast / 2 + texture[y * width + moved])
                return UInt8(y == row ? 63 - level : level)
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) {
                ($0.minimumCodeSize, $0.delay) = (6, delay)
            }
        }
        return builder.finish()
    }

    private func trial<Result>(
        _ gif: [UInt8], quality: Int = 60, _ body: (QualityTrial<GIFReader>) throws -> Result
    ) throws -> Result {
        var options = TranscodeOptions()
        options.quality = quality
        let transcoder = Transcoder(options: options)
        return try gif.withUnsafeBytes { bytes in
            try body(
                try QualityTrial(
                    ScannedSource(transcoder, bytes), PictureContent(isDrawing: false, changedShare: 1, frames: 1000)))
        }
    }

    @Test(arguments: [(0.1, 10), (0.01, 20), (0.5, 3.010_299_956_639_812), (1e-7, 70), (0.75, 1.249_387_366_083)])
    func decibelsAreTheLogarithmOfTheError(_ error: Double, _ decibels: Double) {
        #expect(abs(PictureSimilarity.decibels(error: error) - decibels) < 1e-9)
    }

    @Test func filmsWithoutTheirDitherHaveToBeNearerThanTheirH264() {
        func correction(
            isUndithered: Bool = false, isSmall: Bool = false, chroma: ChromaFormat = .half, isExcerpt: Bool = false
        ) -> Double {
            let content = PictureContent(isDrawing: false, isUndithered: isUndithered, isSmall: isSmall, chroma: chroma)
            return QualityTrial<GIFReader>.correction(content, isExcerpt: isExcerpt)
        }
        #expect(correction() == 0)
        #expect(correction(isUndithered: true) == 0.9)
        #expect(correction(chroma: .full) == -1 && correction(isSmall: true, chroma: .full) == 0)
        #expect(abs(correction(isUndithered: true, isExcerpt: true) - 1.5) < 1e-9)
    }

    @Test func aPictureIsMostSimilarToItself() {
        var random = SeededNumbers(seed: 1)
        var first = (0..<17 * 13).map { _ in UInt8.random(in: 16...235, using: &random) }
        func decibels(_ second: [UInt8]) -> Double {
            var (similarity, second) = (PictureSimilarity(), second)
            similarity.add(&first, 17, &second, 17, width: 17, height: 13)
            return similarity.decibels
        }
        let slightly = first.map { $0 ^ 1 }
        let more = first.map { $0 ^ 16 }
        #expect(abs(decibels(first) - 70) < 1e-9)
        #expect(decibels(slightly) < 70 && decibels(more) < decibels(slightly))
    }

    @Test(arguments: [4, 30]) func av1ReachesTheQualityOfH264(_ frames: Int) throws {
        let found = try trial(Self.film(frames: frames)) { trial -> (target: Double, first: Double, reached: Double) in
            let target = try #require(try trial.target()).decibels
            let tools = AV1Tools(
                PictureContent(isDrawing: false), AV1Tools.Work(frames: frames, pixels: 96 * 64 * frames, changedPixels: 1000))
            // Far from the quantizer that fits, so that the search has to correct it.
            let quantizer = try AV1Tools.search.quantizer(trial, first: 45) { AV1Settings(tools.forTrial, quantizer: $0) }
            return (
                target, try trial.quality(AV1Settings(tools, quantizer: 45)),
                try trial.quality(AV1Settings(tools, quantizer: quantizer))
            )
        }
        #expect(found.target - found.first > 2)
        #expect(abs(found.reached - found.target) < 1.5, "\(found)")
    }

    /// Two whole pictures of more than 2.5 million pixels would need too much memory.
    @Test func aBandOfLargePicturesReachesTheQualityOfH264() throws {
        let (width, height) = (1600, 1600)
        let found = try trial(Self.film(width: width, height: height, frames: 2)) {
            trial -> (target: Double, first: Double, reached: Double) in
            let work = AV1Tools.Work(frames: 2, pixels: 2 * width * height, changedPixels: 50_000_000)
            let tools = AV1Tools(PictureContent(isDrawing: false), work)
            let quantizer = try AV1Tools.search.quantizer(trial, first: 55) { AV1Settings(tools.forTrial, quantizer: $0) }
            return (
                try #require(try trial.target()).decibels, try trial.quality(AV1Settings(tools, quantizer: 55)),
                try trial.quality(AV1Settings(tools, quantizer: quantizer))
            )
        }
        #expect(found.target - found.first > 2 && abs(found.reached - found.target) < 1.5, "\(found)")
    }

    @Test func theRowsAboveABandDoNotCount() throws {
        func target(inverting row: Int?) throws -> Double {
            try trial(Self.film(width: 1600, height: 1600, frames: 1, inverting: row)) {
                try #require(try $0.target()).decibels
            }
        }
        let (plain, edge, middle) = try (target(inverting: nil), target(inverting: 2), target(inverting: 800))
        #expect(edge == plain && middle != plain, "\(plain) \(edge) \(middle)")
    }

    /// A trial takes as long as encoding a third of most animations.
    @Test func onlyALargeDifferenceIsTriedAgain() throws {
        try trial(Self.film(frames: 4)) { trial in
            let tools = AV1Tools(
                PictureContent(isDrawing: false), AV1Tools.Work(frames: 4, pixels: 96 * 64 * 4, changedPixels: 1000))
            func search(from first: Int) throws -> (quantizer: Int, trials: Int) {
                var trials = 0
                let quantizer = try AV1Tools.search.quantizer(trial, first: first) {
                    trials += 1
                    return AV1Settings(tools.forTrial, quantizer: $0)
                }
                return (quantizer, trials)
            }
            let far = try search(from: 45)
            #expect(far.trials > 1)
            let near = try search(from: far.quantizer + 2)
            #expect(near.trials == 1 && abs(near.quantizer - far.quantizer) <= 2, "\(far) \(near)")
        }
    }

    /// In small pictures with full chroma, single steps lose whole colours.
    @Test(arguments: [(true, ChromaFormat.full, true), (false, .full, false), (true, .half, false)])
    func smallPicturesWithFullChromaAreNotCoarserThanTheFirstGuess(
        _ isSmall: Bool, _ chroma: ChromaFormat, _ isBounded: Bool
    ) throws {
        let first = 4
        let content = PictureContent(isDrawing: true, isSmall: isSmall, chroma: chroma)
        let tools = AV1Tools(content, AV1Tools.Work(frames: 4, pixels: 96 * 64 * 4, changedPixels: 1000)).forTrial
        try Self.film(frames: 4).withUnsafeBytes { gif in
            let trial = try QualityTrial(ScannedSource<GIFReader>(Transcoder(), gif), content)
            let found = try AV1Tools.search.quantizer(trial, first: first) { AV1Settings(tools, quantizer: $0) }
            #expect(isBounded ? found == first : found > first, "\(found)")
        }
    }

    @Test func vp9ReachesTheQualityOfH264() throws {
        let found = try trial(Self.film(frames: 8)) { trial -> (target: Double, reached: Double) in
            let settings = {
                VP9Settings(
                    plane: .color(.half), level: $0, speed: .good(2), keyInterval: KeyInterval(pixels: 100, changedShare: 1))
            }
            let level = try VP9Settings.search.quantizer(trial, first: 45, settings)
            return (try #require(try trial.target()).decibels, try trial.quality(settings(level)))
        }
        #expect(abs(found.reached - found.target) < 1.5, "\(found)")
    }

    @Test func aHigherQualityHasAHigherTarget() throws {
        let targets = try [20, 60, 90].map { quality in
            try trial(Self.film(frames: 5), quality: quality) { try #require(try $0.target()).decibels }
        }
        #expect(targets == targets.sorted() && targets[0] < targets[1] && targets[1] < targets[2])
    }

    @Test(arguments: [VideoCodec.h264, .av1]) func theDelaysOfFramesDoNotChangeTheirBytes(_ codec: VideoCodec) throws {
        let sizes = try [4, 10, 100].map { delay in
            try Converted(Self.film(frames: 12, delay: delay)) { $0.codec = codec }.result.bytes
        }
        // The index differs by a few bytes, because times are coded in it.
        let (least, most) = (try #require(sizes.min()), try #require(sizes.max()))
        #expect(most - least < 64, "\(sizes)")
    }
}

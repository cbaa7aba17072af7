import TestSupport
import Testing

@testable import Media

@Suite("A file keeps the bytes that a request allows") struct ByteBudgetTests {
    /// A moving gradient with noise.
    private let film: [UInt8] = {
        let (width, height) = (96, 64)
        var random = SeededNumbers(seed: 5)
        let palette: [GIFBuilder.Color] = (0..<64).map { (level: Int) in
            (UInt8(level * 4), UInt8(level * 3), UInt8(255 - level * 4))
        }
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        for frame in 0..<8 {
            let pixels = (0..<width * height).map { (index: Int) -> UInt8 in
                let place = (index % width + index / width * 2 + frame * 3) % 108
                return UInt8(min(place, 108 - place) + Int.random(in: 0...9, using: &random))
            }
            builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.minimumCodeSize = 6 }
        }
        return builder.finish()
    }()

    @Test(arguments: [OutputFormat.mp4, .webm, .avif, .awebp])
    func theQualityFallsUntilTheFileFits(_ format: OutputFormat) throws {
        let plain = try Converted(film, as: format) { $0.quality = 80 }
        let ample = try Converted(film, as: format) { ($0.quality, $0.maxBytes) = (80, plain.bytes.count) }
        #expect(ample.bytes == plain.bytes)
        let budget = plain.bytes.count * 3 / 4
        let small = try Converted(film, as: format) { ($0.quality, $0.maxBytes) = (80, budget) }
        #expect(small.bytes.count <= budget && small.bytes.count == small.result.bytes)
        let lowest = try Converted(film, as: format) { ($0.quality, $0.maxBytes) = (ByteBudget.lowest, budget) }
        // Low qualities of so small a film have one quantizer in AV1.
        let least = format == .avif ? lowest.bytes.count : lowest.bytes.count * 3 / 2
        #expect(small.bytes.count >= least, "\(small.bytes.count) of \(budget)")
        #expect(small.result.samples == plain.result.samples && small.result.duration == plain.result.duration)
    }

    @Test func aFileWithoutLossGetsLossToFit() throws {
        let lossless = try Converted(film, as: .awebp) { _ in }
        let fitting = try Converted(film, as: .awebp) { $0.maxBytes = lossless.bytes.count }
        #expect(fitting.bytes == lossless.bytes)
        let small = try Converted(film, as: .awebp) { $0.maxBytes = lossless.bytes.count * 3 / 4 }
        #expect(small.bytes.count <= lossless.bytes.count * 3 / 4 && small.bytes.count > lossless.bytes.count / 5)
    }

    @Test(arguments: [OutputFormat.mp4, .webm, .avif]) func whatCannotFitIsRefusedWithItsSmallestSize(_ format: OutputFormat)
        throws
    {
        let film = GIFBuilder.noise(frames: 6, width: 96, height: 64)
        let smallest = try Converted(film, as: format) { ($0.quality, $0.maxBytes) = (10, 100_000_000) }
        do {
            _ = try Converted(film, as: format) { $0.maxBytes = 1000 }
            Issue.record("not refused")
        } catch TranscodeError.overBudget(let found, let maximum) {
            #expect(maximum == 1000 && found == smallest.bytes.count)
        }
        // The request's own quality is the lowest that is tried.
        #expect(throws: TranscodeError.overBudget(smallest: smallest.bytes.count, maximum: 1000)) {
            try Converted(film, as: format) { ($0.quality, $0.maxBytes) = (10, 1000) }
        }
    }

    @Test func theNextQualityIsLowerTheMoreBytesThereAreTooMany() throws {
        for isDrawing in [false, true] {
            var last = 60
            for bytes in [1001, 1100, 1300, 1600, 2000, 3000, 4500, 9000, 1_000_000, .max / 1000] {
                var budget = ByteBudget(1000, isDrawing: isDrawing)
                let quality = try #require(try budget.next(after: bytes, at: 60))
                #expect(quality < last || quality == ByteBudget.lowest, "\(bytes)")
                last = quality
            }
            #expect(last == ByteBudget.lowest)
        }
    }

    @Test func aThirdAttemptFollowsFromTheSizesOfBoth() throws {
        var budget = ByteBudget(1000, isDrawing: true)
        // A file that shrinks by 1 % with each step.
        let second = try #require(try budget.next(after: 1200, at: 60))
        let size = Int(1200 * (0..<60 - second).reduce(1.0) { size, _ in size * 0.99 })
        #expect(size > 1000)
        let third = try #require(try budget.next(after: size, at: second))
        let reached = 1200 * (0..<60 - third).reduce(1.0) { size, _ in size * 0.99 }
        #expect(reached <= 1000 && reached > 940)
        let fourth = try #require(try budget.next(after: 1001, at: third))
        #expect(fourth < third && fourth > ByteBudget.lowest)
        #expect(try budget.next(after: 1001, at: fourth) == ByteBudget.lowest)
        #expect(throws: TranscodeError.overBudget(smallest: 1001, maximum: 1000)) {
            try budget.next(after: 1002, at: ByteBudget.lowest)
        }
    }

    /// The bytes of two WebM files and an AVIF of small animations, at the qualities 60, 58, … 10. Each quality aims at the
    /// similarity of an H.264, so the sizes fall in leaps.
    @Test(
        arguments: [
            [
                3230, 3011, 3352, 2996, 2996, 3053, 2829, 2750, 2750, 2704, 2548, 2548, 2481, 2548, 2340, 2360, 2192, 2157,
                2082, 2049, 1990, 1961, 1961, 1990, 1892, 1871,
            ],
            [
                3528, 3722, 3555, 3722, 3347, 3439, 3322, 3197, 3257, 3064, 3026, 2820, 2867, 2802, 2701, 2645, 2612, 2612,
                2637, 2529, 2577, 2577, 2394, 2387, 2228, 2239,
            ],
            [
                14763, 13411, 11821, 10964, 10492, 10140, 8537, 8205, 7542, 7801, 7294, 6736, 6482, 6038, 5649, 5499, 4611,
                4753, 4434, 4345, 4158, 3968, 3700, 3700, 3700, 3700,
            ],
        ])
    func theQualityStaysNearTheHighestThatFits(sizes: [Int]) throws {
        func size(_ quality: Int) -> Int { sizes[(60 - quality) / 2] }
        for allowed in stride(from: size(60) - 1, through: size(ByteBudget.lowest), by: -size(60) / 50) {
            let highest = try #require((ByteBudget.lowest...60).last { size($0) <= allowed })
            var budget = ByteBudget(allowed, isDrawing: false)
            var (quality, attempts) = (60, 1)
            while let lower = try budget.next(after: size(quality), at: quality) {
                quality = lower
                attempts += 1
            }
            #expect(quality >= highest - 16, "\(highest) fits in \(allowed)")
            #expect(attempts <= 5)
        }
    }

    @Test func anObjectWithABudgetIsNamedAfterTheSearch() {
        var options = TranscodeOptions()
        let plain = OutputFormat.mp4.version(options, of: .gif)
        #expect(!plain.contains(ByteBudget.version))
        options.maxBytes = 100_000
        #expect(OutputFormat.mp4.version(options, of: .gif) == "\(plain)+\(ByteBudget.version)")
    }

    @Test func aFileThatFitsNeedsNoOtherAttempt() throws {
        var budget = ByteBudget(1000, isDrawing: true)
        #expect(try budget.next(after: 1000, at: 60) == nil)
    }
}

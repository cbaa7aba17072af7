import TestSupport
import Testing

@testable import Media

@Suite("The sample table of an MP4 must describe every sample once, inside the data") struct MP4SampleTableTests {
    private static func word(_ number: Int) -> [UInt8] { (0..<4).reversed().map { UInt8(number >> (8 * $0) & 255) } }

    /// A table, as the flaw that its inspection finds; nil for none.
    ///
    /// - Parameters:
    ///   - sizes: One size per sample; nil and `uniform` where all have the same.
    ///   - runs: First chunk, samples per chunk and description of each run.
    private func flaw(
        samples: Int = 3, uniform: Int = 0, sizes: [Int]? = [10, 20, 30], chunks: [Int] = [100], runs: [[Int]] = [[1, 3, 1]],
        data: Range<Int> = 100..<160
    ) -> OutputFlaw? {
        func box(_ kind: String, _ words: [Int]) -> MP4Box {
            MP4Box(kind: kind, content: ByteReader(([0] + words).flatMap(Self.word)[...]))
        }
        do throws(OutputFlaw) {
            try MP4SampleTable(
                [
                    box("stsz", [uniform, samples] + (sizes ?? [])), box("stco", [chunks.count] + chunks),
                    box("stsc", [runs.count] + runs.joined()),
                ], samples: samples
            ).inspect(within: data)
            return nil
        } catch {
            return error
        }
    }

    @Test func aBoxHasAtMost64Boxes() throws {
        let empty: [UInt8] = [0, 0, 0, 8] + Array("free".utf8)
        func boxes(_ count: Int) throws(OutputFlaw) -> [MP4Box] {
            try MP4Box.all(in: ByteReader(Array(repeating: empty, count: count).flatMap(\.self)[...]))
        }
        #expect(try boxes(64).count == 64)
        #expect(throws: OutputFlaw.malformed) { try boxes(65) }
    }

    @Test func samplesMayBeSpreadOverChunksAndRuns() {
        #expect(flaw() == nil)
        #expect(flaw(chunks: [100, 130], runs: [[1, 2, 1], [2, 1, 1]]) == nil)
        #expect(flaw(chunks: [100, 110, 130], runs: [[1, 1, 1]]) == nil)
        #expect(flaw(uniform: 20, sizes: nil) == nil)
    }

    @Test func everySampleIsInAChunk() {
        #expect(flaw(runs: [[1, 2, 1]]) == .wrongSampleCount)
        #expect(flaw(runs: [[1, 4, 1]]) == .wrongSampleCount)
        #expect(flaw(chunks: [], runs: [[1, 3, 1]]) == .malformed)
    }

    @Test func everyRunHasAChunk() {
        // A run that begins behind the last chunk.
        #expect(flaw(runs: [[1, 3, 1], [2, 1, 1]]) == .wrongSampleCount)
    }

    @Test func runsAscendFromTheFirstChunkAndUseTheOneDescription() {
        #expect(flaw(runs: []) == .malformed)
        #expect(flaw(runs: [[2, 3, 1]]) == .malformed)
        #expect(flaw(chunks: [100, 130], runs: [[1, 2, 1], [1, 1, 1]]) == .malformed)
        #expect(flaw(runs: [[1, 3, 2]]) == .malformed)
        #expect(flaw(runs: [[1, 0, 1]]) == .malformed)
    }

    @Test func noSampleLiesOutsideOfTheData() {
        #expect(flaw(chunks: [99]) == .strayingSamples)
        #expect(flaw(chunks: [101]) == .strayingSamples)
        #expect(flaw(chunks: [0xffff_ffff]) == .strayingSamples)
    }

    @Test func eachSampleHasItsSizeAndNoneIsEmpty() {
        #expect(flaw(sizes: [10, 0, 30]) == .malformed)
        #expect(flaw(sizes: [10, 20]) == .malformed)
        #expect(flaw(sizes: [10, 20, 30, 1]) == .malformed)
        #expect(flaw(uniform: 21, sizes: nil) == .strayingSamples)
    }
}

@Suite("A claim that its file does not bear out is found") struct FalseClaimTests {
    private func video() throws -> (bytes: [UInt8], claim: OutputClaim) {
        let made = try Converted(GIFBuilder.animation(frames: 6))
        return (made.bytes, OutputClaim(Transcoder(), made.result))
    }

    /// The offset of a box' content.
    private func content(of kind: String, in bytes: [UInt8]) throws -> Int {
        let moov = try #require(bytes.indices.first { bytes[$0...].starts(with: "moov".utf8) })
        return 4 + (try #require(bytes.indices.first { $0 >= moov && bytes[$0...].starts(with: kind.utf8) }))
    }

    @Test func theTimescaleIsCompared() throws {
        var (bytes, claim) = try video()
        claim.timescale = 200
        #expect(try inspectionFlaw(bytes, claim) == .wrongDuration)
        // Claim and file agree again.
        bytes[try content(of: "mdhd", in: bytes) + 15] = 200
        #expect(try inspectionFlaw(bytes, claim) == nil)
    }

    @Test func theDurationsOfTheSamplesComeToTheWhole() throws {
        var (bytes, claim) = try video()
        let table = try content(of: "stts", in: bytes)
        let duration = bytes[table + 15]
        #expect((1..<255).contains(duration))
        bytes[table + 15] = duration - 1
        #expect(try inspectionFlaw(bytes, claim) == .wrongDuration)
        bytes[table + 15] = duration + 1
        #expect(try inspectionFlaw(bytes, claim) == .wrongDuration)
        bytes[table + 15] = duration
        claim.samples = 5
        #expect(try inspectionFlaw(bytes, claim) == .wrongSampleCount)
    }

    @Test func thereIsOneTrack() throws {
        let (bytes, _) = try video()
        func number(_ offset: Int) -> Int { bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
        let moov = try content(of: "moov", in: Array(bytes)) - 8
        let track = try content(of: "trak", in: bytes) - 8
        let copy = bytes[track..<track + number(track)]
        var twice = bytes
        twice.insert(contentsOf: copy, at: track)
        let size = number(moov) + copy.count
        for index in 0..<4 { twice[moov + index] = UInt8(size >> (8 * (3 - index)) & 255) }
        var claim = try video().claim
        claim.bytes = twice.count
        #expect(try inspectionFlaw(twice, claim) == .missingPart)
    }

    @Test func theIndexIsNoLargerThanItsSamplesExplain() throws {
        var (bytes, claim) = try video()
        let moov = try content(of: "moov", in: bytes) - 8
        let padding = [0, 1, 0, 0] + Array("free".utf8) + [UInt8](repeating: 0, count: 65_536 - 8)
        let size = bytes[moov..<moov + 4].reduce(0) { $0 << 8 | Int($1) }
        bytes.insert(contentsOf: padding, at: moov + size)
        for index in 0..<4 { bytes[moov + index] = UInt8((size + padding.count) >> (8 * (3 - index)) & 255) }
        claim.bytes = bytes.count
        #expect(try inspectionFlaw(bytes, claim) == .malformed)
        // A million frames in twenty rounds, 44 bytes each.
        #expect(MP4Outline.largestPart(samples: 20_000_000) > 20_000_000 * 44)
    }

    @Test func theProfileIsOneThatPlayersHave() throws {
        let (original, claim) = try video()
        var bytes = original
        let profile = try content(of: "avcC", in: bytes) + 1
        #expect(bytes[profile] == 100)
        bytes[profile] = 110
        #expect(try inspectionFlaw(bytes, claim) == .wrongCodec)
    }

    @Test func numbersOutOfRangeAreRefusedBeforeTheFileIsRead() throws {
        let (bytes, claim) = try video()
        let cases: [(WritableKeyPath<OutputClaim, Int>, Int)] = [
            (\.timescale, 0), (\.timescale, 1 << 25), (\.bytes, -1), (\.bytes, 1 << 49),
        ]
        for (path, value) in cases {
            var wrong = claim
            wrong[keyPath: path] = value
            #expect(try inspectionFlaw(bytes, wrong) == .outOfRange && inspectionFlaw([], wrong) == .outOfRange)
        }
    }

    // MARK: Pictures

    private func flaw(_ format: OutputFormat, _ bytes: [UInt8]) throws -> OutputFlaw? {
        try inspectionFlaw(bytes, OutputClaim(format: format, bytes: bytes.count, width: 300, height: 200))
    }

    private static let frame: [UInt8] = [0xff, 0xc0, 0, 17, 8, 0, 200, 1, 44, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
    private static let scan: [UInt8] = [0xff, 0xda, 0, 12, 3, 1, 0, 2, 0x11, 3, 0x11, 0, 0x3f, 0, 1, 2, 3, 0xff, 0xd9]

    @Test func aJPEGHasOneFrameOfEightBits() throws {
        #expect(try flaw(.jpg, [0xff, 0xd8] + Self.frame + Self.scan) == nil)
        #expect(try flaw(.jpg, [0xff, 0xd8] + Self.frame + Self.frame + Self.scan) == .malformed)
        var deep = Self.frame
        deep[4] = 12
        #expect(try flaw(.jpg, [0xff, 0xd8] + deep + Self.scan) == .wrongCodec)
    }

    @Test func aWebPHasOneKeyFrame() throws {
        func riff(_ frames: [[UInt8]]) -> [UInt8] {
            let body = Array("WEBP".utf8) + frames.flatMap { Array("VP8 ".utf8) + [UInt8($0.count), 0, 0, 0] + $0 }
            return Array("RIFF".utf8) + [UInt8(body.count), 0, 0, 0] + body
        }
        let key: [UInt8] = [0x10, 0, 0, 0x9d, 0x01, 0x2a, 44, 1, 200, 0, 1, 2]
        #expect(try flaw(.webp, riff([key])) == nil)
        #expect(try flaw(.webp, riff([key, key])) == .malformed)
        #expect(try flaw(.webp, riff([[0x11] + key.dropFirst()])) == .wrongCodec)
    }
}

@Suite("Rectangles") struct RectangleTests {
    private let some = Rectangle(x: 3, y: 4, width: 5, height: 6)

    @Test func anEmptyRectangleAddsNothingToAUnion() {
        let empty = Rectangle(x: 0, y: 0, width: 0, height: 9)
        #expect(some.union(empty) == some && empty.union(some) == some)
        #expect(some.union(Rectangle(x: 0, y: 9, width: 1, height: 2)) == Rectangle(x: 0, y: 4, width: 8, height: 7))
    }

    @Test func rectanglesApartHaveAnEmptyIntersection() {
        #expect(some.intersection(Rectangle(x: 5, y: 0, width: 50, height: 6)) == Rectangle(x: 5, y: 4, width: 3, height: 2))
        #expect(some.intersection(Rectangle(x: 8, y: 4, width: 5, height: 6)).isEmpty)
        #expect(some.intersection(Rectangle(x: 90, y: 90, width: 5, height: 6)).isEmpty)
    }

    @Test func clippingKeepsWhatLiesOnTheCanvas() {
        #expect(
            Rectangle(x: -2, y: 3, width: 10, height: 10).clipped(toWidth: 5, height: 8)
                == Rectangle(x: 0, y: 3, width: 5, height: 5))
        #expect(Rectangle(x: 70, y: 0, width: 10, height: 10).clipped(toWidth: 5, height: 8).isEmpty)
    }
}

@Suite("Posters at the limits of their formats", .timeLimit(.minutes(10))) struct PosterLimitTests {
    /// A GIF of so many colours, each a pixel.
    private func gif(colors: Int, width: Int) -> [UInt8] {
        let palette: [GIFBuilder.Color] = (0...255).map { (index: UInt8) in (index, 255 - index, index &* 7) }
        let height = (colors + width - 1) / width
        var builder = GIFBuilder(width: width, height: height, palette: palette)
        let pixels: [UInt8] = (0..<width * height).map { index in UInt8(min(index, colors - 1)) }
        builder.add(GIFBuilder.Frame(width: width, height: height, pixels: pixels)) { $0.minimumCodeSize = 8 }
        return builder.finish()
    }

    @Test(arguments: [2, 255, 256]) func aPNGOfUpTo256ColoursHasAPalette(_ colors: Int) throws {
        let gif = gif(colors: colors, width: 16)
        let poster = try Converted(gif, as: .png) { _ in }
        // The colour type of IHDR: 3 is a palette.
        #expect(poster.bytes[25] == 3)
        #expect(try poster.picture() == Composing.frames(gif)[0])
    }

    @Test func theChromaOfAnOddLastRowIsThatOfTheRow() throws {
        var builder = GIFBuilder(width: 16, height: 17)
        // Grey above a last row of red; its chroma would be halved if the row above counted.
        let pixels = (0..<16 * 17).map { UInt8($0 < 16 * 16 ? 6 : 2) }
        builder.add(GIFBuilder.Frame(width: 16, height: 17, pixels: pixels))
        let picture = try Converted(builder.finish(), as: .jpg) { $0.quality = 80 }.picture()
        let (red, blue) = (Int(picture[16 * 16 + 8] & 255), Int(picture[16 * 16 + 8] >> 16 & 255))
        #expect(red > 200 && blue < 60, "\(red), \(blue)")
    }
}

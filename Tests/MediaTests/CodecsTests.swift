import SystemIO
import TestSupport
import Testing

@testable import Media

@Suite("The codecs of a media type are read from the file") struct CodecsTests {
    /// What the inspection of a worker's file returns.
    private func codecs(_ bytes: [UInt8], _ claim: OutputClaim) throws -> String? {
        var file = try MemoryFile(name: "test")
        try bytes.withUnsafeBytes { try file.append($0) }
        return try OutputInspection.inspect(try file.seal(), as: claim, limit: 1 << 30)
    }

    private func codecs(_ gif: [UInt8], _ transcoder: Transcoder) throws -> String? {
        let made = try Converted(gif, transcoder)
        return try codecs(made.bytes, OutputClaim(transcoder, made.result))
    }

    @Test(arguments: [(16, 16), (320, 180), (1280, 720)])
    func thoseOfH264AreItsProfileConstraintsAndLevel(_ width: Int, _ height: Int) throws {
        let made = try Converted(GIFBuilder.animation(frames: 3, width: width, height: height, delay: 4))
        let claim = OutputClaim(Transcoder(), made.result)
        let stream = try made.stream()
        let level = try #require(stream["level"].flatMap { UInt8($0) })
        #expect(try codecs(made.bytes, claim) == "avc1.6400\(Hex.encode([level]))")
    }

    /// By its size and rate, the stream could have level 1.
    @Test(arguments: [1, 3]) func theLevelOfH264HoldsTheBitRate(_ loops: Int) throws {
        var options = TranscodeOptions()
        (options.quality, options.time.loops) = (100, loops)
        let transcoder = Transcoder(options: options)
        let made = try Converted(GIFBuilder.noise(frames: 40, width: 64, height: 64), transcoder)
        // Level 1 takes 27,343 bytes at once and 10,000 per second.
        #expect(made.bytes.count > 30_000 + 10_000 * made.result.duration / made.result.timescale)
        #expect(made.boxes.level > 10)
        // ffprobe reads the sequence parameter set.
        #expect(try made.stream()["level"] == "\(made.boxes.level)")
        let named = try codecs(made.bytes, OutputClaim(transcoder, made.result))
        #expect(named == "avc1.6400\(Hex.encode([UInt8(made.boxes.level)]))")
    }

    /// Level 1 takes 10,000 bytes per second, and 27,343 at once.
    @Test(arguments: [
        (27_343, 1, 100, 10), (27_344, 1, 100, 11), (10_000, 10_000, 100, 10), (10_002, 10_000, 100, 11),
        (10_000, 1000, 98, 11), (1 << 30, 99, 1, 62),
    ])
    func aLevelOfH264HoldsTheRateAndTheBuffer(_ bytes: Int, _ pictures: Int, _ distance: Int, _ level: UInt8) {
        var levels = H264Levels(timescale: 100)
        for index in 0..<pictures { levels.add(bytes: bytes, at: Int64(index * distance)) }
        #expect(levels.lowest == level)
    }

    /// For its rate control, the encoder is told of a hundredth of a second.
    @Test(arguments: [([20, 20, 20], 5), ([4, 4, 4], 25), ([10, 40, 5], 20), ([500], 0.2)] as [([Int], Double)])
    func theParametersOfH264StateTheShortestDurationOfAPicture(_ delays: [Int], _ rate: Double) throws {
        var builder = GIFBuilder(width: 32, height: 32)
        for (index, delay) in delays.enumerated() { builder.add(color: UInt8(index), delay: delay) }
        #expect(try Converted(builder.finish()).statedRate() == rate)
    }

    @Test func aDifferentFileHasDifferentCodecs() throws {
        let made = try Converted(GIFBuilder.animation(frames: 3))
        let claim = OutputClaim(Transcoder(), made.result)
        let start = try #require(made.bytes.indices.first { made.bytes[$0...].starts(with: "avcC".utf8) }) + 4
        var bytes = made.bytes
        bytes[start + 2] = 0x10
        bytes[start + 3] = 0x33
        #expect(try codecs(bytes, claim) == "avc1.641033")
        #expect(try codecs(made.bytes, claim) != "avc1.641033")
    }

    @Test(
        .enabled(if: LinkedLibraries.has(.av1)), arguments: [(320, 180, 20, "00"), (1088, 612, 4, "04"), (1088, 612, 2, "08")])
    func thoseOfAV1AreItsProfileLevelTierAndDepth(_ width: Int, _ height: Int, _ delay: Int, _ level: String) throws {
        var options = TranscodeOptions()
        options.codec = .av1
        let gif = GIFBuilder.animation(frames: 2, width: width, height: height, delay: delay)
        #expect(try codecs(gif, Transcoder(options: options)) == "av01.0.\(level)M.08")
    }

    @Test(.enabled(if: LinkedLibraries.present.hasEncoder(.webm))) func thoseOfVP9HaveTheLevelOfItsPictures() throws {
        var options = TranscodeOptions()
        options.chroma = .subsampled
        let small = GIFBuilder.animation(frames: 3, width: 64, height: 48, delay: 10)
        #expect(try codecs(small, Transcoder(output: .webm, options: options)) == "vp09.00.10.08")
        // The same size at more pictures per second.
        let fast = GIFBuilder.animation(frames: 3, width: 320, height: 180, delay: 2)
        #expect(try codecs(fast, Transcoder(output: .webm, options: options)) == "vp09.00.20.08")
        // The small size at a higher bit rate.
        options.quality = 90
        let transcoder = Transcoder(output: .webm, options: options)
        let noise = try Converted(GIFBuilder.noise(frames: 40, width: 64, height: 64), transcoder)
        let claim = OutputClaim(transcoder, noise.result)
        #expect(noise.bytes.count * noise.result.timescale > 30_000 * noise.result.duration)
        #expect(try codecs(noise.bytes, claim) == "vp09.00.11.08")
    }

    @Test(arguments: [
        (64, 64, 1_000_000_000, 10), (256, 144, 44_444_445, 10), (256, 144, 33_333_333, 11), (512, 72, 1_000_000_000, 10),
        (514, 70, 1_000_000_000, 11), (1920, 1080, 33_333_334, 40), (1920, 1080, 16_666_667, 41),
        (3840, 2160, 33_333_334, 50), (4096, 2, 1_000_000_000, 40), (65_536, 65_536, 1, 62), (2, 2, .max, 10),
    ])
    func aLevelHoldsRateSizeAndSide(_ width: Int, _ height: Int, _ shortest: Int, _ number: Int) {
        #expect(VP9Level.of(width: width, height: height, VP9Load(shortest: shortest)).number == number)
    }

    @Test(arguments: [(200_000, 400_000, 10), (200_001, 0, 11), (0, 400_001, 11), (180_000_000, 46_000_001, 52), (.max, 0, 62)])
    func aLevelHoldsTheBitRateAndTheBuffer(_ rate: Int, _ bits: Int, _ number: Int) {
        let load = VP9Load(shortest: VP9Load.nanosecondsPerSecond, bitsPerSecond: rate, mostBits: bits)
        #expect(VP9Level.of(width: 64, height: 64, load).number == number)
    }

    @Test(arguments: [OutputFormat.avif, .jpg, .png, .webp, .facts])
    func picturesAndFactsHaveNone(_ output: OutputFormat) throws {
        guard LinkedLibraries.present.hasEncoder(output) else { try Test.cancel("The encoder is missing.") }
        #expect(try codecs(GIFBuilder.animation(frames: 3), Transcoder(output: output)) == nil)
    }
}

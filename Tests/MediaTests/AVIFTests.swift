import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("An AVIF has the GIF's times, loops, colours and transparency", .timeLimit(.minutes(10))) struct AVIFTests {
    /// The samples of a track, decoded: luma of each picture.
    private func luma(_ samples: [[UInt8]], width: Int, height: Int) throws -> [[UInt8]] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString).obu")
        defer { try? FileManager.default.removeItem(at: file) }
        // A stream outside of a container has a temporal delimiter in front of each picture.
        try Data(samples.flatMap { [0x12, 0x00] + $0 }).write(to: file)
        return try FFmpeg.lumaPlanes(of: file, width: width, height: height)
    }

    /// Where no picture is as short as those that browsers show for 100 ms.
    @Test("Every duration is exact", arguments: [1000, 1500, 333, 100])
    func durationsAreExact(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 50, 65_535]
        let avif = try Converted(WebMTests.sprite(delays), as: .avif) { $0.time.speed = speed }
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(boxes.top == ["ftyp", "meta", "moov", "mdat"] && boxes.tracks.map(\.handler) == ["pict", "auxv"])
        // The colours of a small drawing have full resolution, which is of the advanced profile.
        #expect(Set(["avis", "avif", "msf1", "mif1", "miaf", "MA1A"]).isSubset(of: boxes.brands) && boxes.brands[0] == "avis")
        for track in boxes.tracks {
            #expect(track.durations.count == delays.count && track.samples.count == delays.count)
            for (duration, delay) in zip(track.durations, delays) {
                #expect(duration * 100 * speed == delay * 1000 * track.timescale)
            }
            #expect(track.duration == track.durations.reduce(0, +) && track.duration == avif.result.duration)
            #expect(track.keys == [1])
        }
    }

    /// Browsers show a picture of up to 10 ms for 100 ms, so none is as short, and the whole lasts as long as the source.
    @Test(arguments: [2000, 3000, 10_000]) func picturesOfFastAnimationsAreLongEnough(_ speed: Int) throws {
        let delays = [7, 30, 2, 11, 50, 2, 2, 2]
        let avif = try Converted(WebMTests.sprite(delays), as: .avif) { $0.time.speed = speed }
        for track in try AVIFBoxes(avif.bytes).tracks {
            #expect(track.durations.allSatisfy { $0 * 1000 > 10 * track.timescale } && track.durations.count >= 5)
            #expect(track.duration * 100 * speed == delays.reduce(0, +) * 1000 * track.timescale)
        }
    }

    @Test(
        "It plays as often as the GIF does",
        arguments: [
            (0, 1, nil), (nil, 1, 1), (1, 1, 2), (1, 2, 1), (3, 1, 4), (3, 2, 2), (4, 2, 3), (nil, 3, 1), (0, 3, nil),
        ] as [(Int?, Int, Int?)])
    func itPlaysAsOftenAsTheGIF(_ loop: Int?, _ rounds: Int, _ plays: Int?) throws {
        let avif = try Converted(WebMTests.sprite([10, 20], loop: loop), as: .avif) { $0.time.loops = rounds }
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(boxes.tracks.count == 2)
        for track in boxes.tracks {
            #expect(track.repeats == (plays != 1) && track.shown == plays.map { $0 * 30 * rounds })
            #expect(track.durations == (0..<rounds).flatMap { _ in [10, 20] })
        }
    }

    @Test("The level holds the rate of the pictures", arguments: [(4, 4), (2, 8)])
    func theLevelFollowsFromTheShortestPicture(_ delay: Int, _ level: Int) throws {
        var builder = GIFBuilder(width: 1088, height: 612)
        for (color, delay) in [(1, delay), (2, 10)] { builder.add(color: UInt8(color), delay: delay) }
        let avif = try Converted(builder.finish(), as: .avif) { _ in }
        let start = try #require(avif.bytes.indices.first { avif.bytes[$0...].starts(with: "av1C".utf8) }) + 4
        #expect(Int(avif.bytes[start + 1] & 31) == level)
        let sample = try #require(try AVIFBoxes(avif.bytes).tracks.first?.samples.first)
        #expect(AV1Stream(sample, isMonochrome: false)?.level == level)
    }

    @Test(
        "The baseline profile has levels up to 5.1",
        arguments: [(0, nil), (13, nil), (14, nil), (13, 14), (13, 13), (31, nil)] as [(Int, Int?)])
    func onlyABaselineFileSaysThatItIs(_ color: Int, _ alpha: Int?) throws {
        /// The reduced sequence header of a still picture.
        func stream(_ level: Int) throws -> AV1Stream {
            let bits = 1 << 11 | level << 6
            return try #require(AV1Stream([0x0a, 2, UInt8(bits >> 8), UInt8(bits & 255)], isMonochrome: false))
        }
        let writer = AVIFWriter(
            width: 8, height: 8, timescale: 100, color: try stream(color), alpha: try alpha.map(stream), plays: 1)
        let picture = EncodedPicture(time: 0, isKey: true, color: 0..<4, alpha: alpha.map { _ in 4..<8 })
        for rounds in [1, 2] {
            let layout = writer.layout([picture], end: 10, rounds: rounds)
            guard case .bytes(let head)? = layout.pieces.first else {
                Issue.record("no head")
                return
            }
            let brands = head[..<Int(head[3])]
            let isBaseline = brands.indices.contains { brands[$0...].starts(with: "MA1B".utf8) }
            #expect(isBaseline == (color <= 13 && alpha ?? 0 <= 13))
        }
    }

    @Test func repeatedRoundsShareTheirBytes() throws {
        let once = try Converted(GIFBuilder.noise(frames: 4, width: 48, height: 48), as: .avif) { _ in }
        let many = try Converted(GIFBuilder.noise(frames: 4, width: 48, height: 48), as: .avif) { $0.time.loops = 20 }
        #expect(many.bytes.count < once.bytes.count + 1000)
        let samples = try #require(try AVIFBoxes(many.bytes).tracks.first).samples
        #expect(samples.count == 80)
        for index in samples.indices { #expect(samples[index] == samples[index % 4]) }
    }

    @Test("Odd sizes stay odd", arguments: [(33, 17), (64, 48), (1, 1), (255, 3)])
    func oddSizesStay(_ width: Int, _ height: Int) throws {
        let avif = try Converted(GIFBuilder.animation(frames: 3, width: width, height: height), as: .avif) { _ in }
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(avif.result.width == width && avif.result.height == height && boxes.size == (width, height))
        let track = try #require(boxes.tracks.first)
        #expect(track.width == width && track.height == height)
        let pictures = try luma(track.samples, width: width, height: height)
        #expect(pictures.count == track.samples.count)
    }

    /// Above 2.5 million pixels, alpha is encoded before the colours.
    @Test(arguments: [(64, 48), (1600, 1600)]) func coloursAndAlphaAreThoseOfTheGIF(_ width: Int, _ height: Int) throws {
        let avif = try Converted(WebMTests.sprite(width: width, height: height), as: .avif) { _ in }
        #expect(avif.bytes.count == avif.result.bytes)
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(boxes.properties == ["ispe", "pixi", "av1C", "colr", "pixi", "av1C", "auxC"])
        let colors = try luma(boxes.tracks[0].samples, width: width, height: height)
        let alpha = try luma(boxes.tracks[1].samples, width: width, height: height)
        #expect(colors.count == 3 && alpha.count == 3)
        for index in 0..<3 {
            let left = 8 + 8 * index
            for (x, y) in [(left + 1, 10), (left + 8, 16), (left + 14, 23)] {
                #expect(abs(Int(colors[index][y * width + x]) - 63) < 5 && alpha[index][y * width + x] > 249)
            }
            #expect(alpha[index][2] < 3 && alpha[index][16 * width + left - 3] < 6)
        }
    }

    @Test func theStillImageIsTheFirstPicture() throws {
        let boxes = try AVIFBoxes(Converted(WebMTests.sprite(), as: .avif) { _ in }.bytes)
        #expect(boxes.items == boxes.tracks.map { $0.samples[0] })
    }

    @Test(arguments: [true, false]) func aStillSourceMakesAStillImage(_ isTransparent: Bool) throws {
        let gif = isTransparent ? WebMTests.sprite([50]) : GIFBuilder.animation(frames: 1)
        let avif = try Converted(gif, as: .avif) { $0.time.loops = 3 }
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(boxes.top == ["ftyp", "meta", "mdat"] && boxes.brands.first == "avif" && !boxes.brands.contains("avis"))
        #expect(boxes.items.count == (isTransparent ? 2 : 1) && avif.result.samples == 1 && avif.result.duration == 0)
        #expect(try luma([boxes.items[0]], width: avif.result.width, height: avif.result.height).count == 1)
    }

    @Test func anOpaqueAnimationHasOneTrack() throws {
        let boxes = try AVIFBoxes(Converted(GIFBuilder.animation(), as: .avif) { _ in }.bytes)
        #expect(boxes.tracks.map(\.handler) == ["pict"] && boxes.items.count == 1)
    }
}

import TestSupport
import Testing

@testable import Media

@Suite("Facts describe the animation")
struct FactsTests {
    private func delays(_ facts: Converted) -> [Int] {
        FactsOutput.delays(facts.bytes.dropLast(Placeholder.byteCount)) ?? []
    }

    @Test func delaysAreThoseThatAreShown() throws {
        var builder = GIFBuilder(width: 8, height: 8)
        builder.addLoop(3)
        for (index, delay) in [0, 1, 2, 65535].enumerated() { builder.add(color: UInt8(index), delay: delay) }
        let facts = try Converted(builder.finish(), Transcoder(output: .facts, limits: MediaLimits(duration: 100_000)))
        #expect(delays(facts) == [10, 10, 2, 65535])
        #expect(facts.result.frames == 4 && facts.result.duration == 65557 && facts.result.loopCount == 3)
        #expect(!facts.result.isTransparent)
    }

    @Test func transparentIsWhatCanBeSeenThrough() throws {
        func isTransparent(_ build: (inout GIFBuilder) -> Void) throws -> Bool {
            var builder = GIFBuilder(width: 8, height: 8)
            build(&builder)
            return try Converted(builder.finish(), as: .facts) { _ in }.result.isTransparent
        }
        #expect(try !isTransparent { $0.add(color: 1) })
        // Later frames leave out what does not change: the picture stays opaque.
        #expect(
            try !isTransparent {
                $0.add(color: 1)
                $0.add(GIFBuilder.Frame(width: 8, height: 8, color: 2)) { $0.transparent = 2 }
            })
        #expect(try isTransparent { $0.add(GIFBuilder.Frame(width: 8, height: 8, color: 2)) { $0.transparent = 2 } })
        #expect(try isTransparent { $0.add(GIFBuilder.Frame(width: 4, height: 8, color: 2)) })
        #expect(
            try isTransparent {
                $0.add(GIFBuilder.Frame(width: 8, height: 8, color: 2)) { $0.disposal = 2 }
                $0.add(GIFBuilder.Frame(width: 4, height: 4, color: 3))
            })
    }

    @Test func framesThatAreNotWholeDoNotCount() throws {
        var builder = GIFBuilder(width: 16, height: 16)
        builder.add(color: 1, delay: 20)
        let whole = builder.bytes.count
        builder.add(GIFBuilder.Frame(width: 16, height: 16, pixels: (0..<256).map { UInt8($0 % 7) }))
        let facts = try Converted(Array(builder.bytes[..<(whole + 30)]), as: .facts) { _ in }
        #expect(delays(facts) == [20] && facts.result.duration == 20)
    }

    @Test("Frames that cannot be decoded do not count, with and without transparency", arguments: [true, false])
    func damagedFramesDoNotCount(_ isTransparent: Bool) throws {
        let coding = APNGBuilder.Coding(type: isTransparent ? 6 : 2)
        let samples = Array(repeating: 0, count: 4 * 2 * coding.channels)
        var png = APNGBuilder(width: 4, height: 2, coding: coding)
        for _ in 0..<3 { png.add(APNGBuilder.Frame(width: 4, height: 2, samples: samples)) }
        // The data of the second frame is no zlib stream. The chunk's checksum is right.
        png.chunks[5].data[4] ^= 0xff
        let frame = WebPBuilder.Frame(width: 4, height: 2, word: isTransparent ? Word.clear : Word.red)
        var webp = WebPBuilder(width: 4, height: 2)
        webp.add(frame)
        // The header of a picture without its codes.
        webp.addChunks(Array("VP8L".utf8) + [6, 0, 0, 0, 0x2f, 3, 0x40, 0, 0, 0xff], for: frame)
        webp.add(frame)
        for file in [png.finish(), webp.finish()] {
            let facts = try Converted(file, as: .facts) { _ in }
            #expect(facts.result.frames == 1 && delays(facts).count == 1)
            #expect(facts.result.isTransparent == isTransparent)
            #expect(try Converted(file).result.frames == 1)
        }
    }
}

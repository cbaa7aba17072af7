import Foundation
import TestSupport
import Testing

@Suite struct GIFFuzzTests {
    /// What `scripts/fuzz gif` found worth keeping, each file reaching code that no other one reaches.
    private static func corpus() throws -> [[UInt8]] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Corpus")
        return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }.map { [UInt8](try Data(contentsOf: $0)) }
    }

    @Test func theCorpusHoldsNoViolation() throws {
        let corpus = try Self.corpus()
        #expect(corpus.count > 30)
        #expect(corpus.reduce(0) { $0 + $1.count } < 100_000)
        for input in corpus { check(input) }
    }

    @Test func theSeedsAreGIFsAndHoldNoViolation() throws {
        for (index, seed) in GIFSeeds.all.enumerated() {
            #expect(throws: Never.self, "seed \(index)") { try Composing.summary(seed, limits: GIFInvariants.limits) }
            check(seed)
        }
    }

    @Test func changedAndCutSeedsHoldNoViolation() {
        var random = SplitMix(state: 1)
        for seed in GIFSeeds.all where seed.count < 2000 {
            for _ in 0..<60 { check(mutate(seed, &random)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { GIFInvariants.violation($0) }
        #expect(violation == nil, "\(input.prefix(200).map { String($0, radix: 16) }.joined(separator: " "))")
    }

    /// The input with some bytes changed, taken out or put in, or cut off.
    private func mutate(_ input: [UInt8], _ random: inout SplitMix) -> [UInt8] {
        let telling: [UInt8] = [0, 1, 2, 3, 4, 8, 11, 12, 0x21, 0x2c, 0x3b, 0x40, 0x7f, 0x80, 0xf9, 0xfe, 0xff]
        var input = input
        for _ in 0..<Int.random(in: 1...4, using: &random) where !input.isEmpty {
            let place = Int.random(in: 0..<input.count, using: &random)
            let byte = telling.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<7, using: &random) {
            case 0: input.remove(at: place)
            case 1: input.insert(byte, at: place)
            case 2: input.removeLast(min(input.count, place % 40))
            default: input[place] = byte
            }
        }
        return input
    }

    /// The same numbers in every run, so that a failure can be repeated.
    private struct SplitMix: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            state &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return mixed ^ mixed >> 31
        }
    }
}

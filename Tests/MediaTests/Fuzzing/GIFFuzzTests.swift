import Foundation
import TestSupport
import Testing

@Suite("Mutated GIFs end in a result or an error")
struct GIFFuzzTests {
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
            #expect(throws: Never.self, "seed \(index)") { try Composing.summary(seed, limits: Composition.limits) }
            check(seed)
        }
    }

    @Test func changedAndCutSeedsHoldNoViolation() {
        let telling: [UInt8] = [0, 1, 2, 3, 4, 8, 11, 12, 0x21, 0x2c, 0x3b, 0x40, 0x7f, 0x80, 0xf9, 0xfe, 0xff]
        var mutator = ByteMutator(seed: 1, telling: telling)
        for seed in GIFSeeds.all where seed.count < 2000 {
            for step in 0..<60 {
                let changed = mutator.mutate(seed)
                check(changed)
                check(Array(changed.prefix(changed.count * step / 60)))
            }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { GIFInvariants.violation($0) }
        #expect(violation == nil, "\(input.prefix(200).map { String($0, radix: 16) }.joined(separator: " "))")
    }
}

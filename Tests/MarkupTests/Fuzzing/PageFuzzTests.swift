import TestSupport
import Testing

@Suite("Pages violate no invariant of the rewriter") struct PageFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in PageSeeds.all {
            for first in UInt8(0)..<11 { check([first] + seed.dropFirst()) }
        }
    }

    @Test func mutatedPagesViolateNoInvariant() {
        var mutator = ByteMutator(seed: 17, telling: Array("<>/!-[]?='\" &;sSgifimr\n".utf8))
        for seed in PageSeeds.all {
            for _ in 0..<100 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { PageInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

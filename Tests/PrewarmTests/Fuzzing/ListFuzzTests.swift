import TestSupport
import Testing

@testable import Prewarm

@Suite("Lists of sources violate no invariant") struct ListFuzzTests {
    @Test func seedsViolateNoInvariantInAnySyntax() {
        for seed in ListSeeds.all {
            for first in ListInvariants.formats.indices { check([UInt8(first)] + seed.dropFirst()) }
        }
    }

    @Test func mutatedListsViolateNoInvariant() {
        var mutator = ByteMutator(seed: 19, telling: Array("<>/!-[]?='\" &;#{}:,.\n\r0xaglociturm".utf8) + [0, 0x1f, 0xff])
        for seed in ListSeeds.all {
            for _ in 0..<100 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { ListInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

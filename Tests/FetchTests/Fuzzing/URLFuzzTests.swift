import TestSupport
import Testing

@Suite("URLs violate no invariant") struct URLFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in URLSeeds.all { check(seed) }
    }

    @Test func mutatedURLsViolateNoInvariant() {
        var mutator = ByteMutator(seed: 1, telling: Array("/:@?#%.[]*\\25eE0xX\n\r\t é１\0-_~|;,".utf8))
        for seed in URLSeeds.all {
            for _ in 0..<300 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { URLInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

import TestSupport
import Testing

@Suite("Forms violate no invariant") struct MultipartFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in MultipartSeeds.all {
            for first in UInt8(0)..<9 { check([first] + seed.dropFirst()) }
        }
    }

    @Test func mutatedFormsViolateNoInvariant() {
        var mutator = ByteMutator(seed: 5, telling: Array("\r\n--b;=\"\\: \t".utf8))
        for seed in MultipartSeeds.all {
            for _ in 0..<200 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { MultipartInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

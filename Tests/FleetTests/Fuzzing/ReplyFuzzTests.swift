import TestSupport
import Testing

@Suite("Replies of a Redis server violate no invariant") struct ReplyFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in ReplySeeds.all {
            for first in UInt8(0)..<11 { check([first] + seed.dropFirst()) }
        }
    }

    @Test func mutatedRepliesViolateNoInvariant() {
        var mutator = ByteMutator(seed: 11, telling: Array("+-:$*%~#_,(=>!\r\n0123456789".utf8))
        for seed in ReplySeeds.all {
            for _ in 0..<200 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { ReplyInvariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

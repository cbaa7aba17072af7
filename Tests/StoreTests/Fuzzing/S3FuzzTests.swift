import TestSupport
import Testing

@Suite("Answers of an S3 server violate no invariant") struct S3FuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in S3Seeds.all { check(seed) }
    }

    @Test func mutatedAnswersViolateNoInvariant() {
        var mutator = ByteMutator(seed: 7, telling: Array("<>/&;#x=\"'!-? \n:é0123456789".utf8))
        for seed in S3Seeds.all {
            for _ in 0..<200 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { S3Invariants.violation($0) }
        #expect(violation == nil, "\(String(decoding: input, as: UTF8.self).debugDescription)")
    }
}

import TestSupport
import Testing

@testable import Sandbox

@Suite("Messages of workers violate no invariant") struct MessageFuzzTests {
    @Test func seedsViolateNoInvariant() {
        for seed in MessageSeeds.all {
            #expect(seed.withUnsafeBytes { WorkerMessage($0) } != nil)
            check(seed)
        }
    }

    @Test func mutatedMessagesViolateNoInvariant() {
        var mutator = ByteMutator(seed: 13, telling: [0, 1, 2, 3, 6, 0x7f, 0x80, 0xff])
        for seed in MessageSeeds.all {
            for _ in 0..<200 { check(mutator.mutate(seed)) }
        }
    }

    private func check(_ input: [UInt8]) {
        let violation = input.withUnsafeBytes { MessageInvariants.violation($0) }
        #expect(violation == nil, "\(input)")
    }
}

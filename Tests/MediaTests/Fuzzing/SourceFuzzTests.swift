import TestSupport
import Testing

@testable import Media

@Suite("Mutated sources end in a result or an error") struct SourceFuzzTests {
    private typealias Check = (UnsafeRawBufferPointer) -> String?

    private static var targets: [(name: String, seeds: [[UInt8]], check: Check)] {
        [
            ("apng", SourceSeeds.apng, SourceInvariants.apng), ("webp", SourceSeeds.webp, SourceInvariants.webp),
            ("clip", ClipSeeds.all, ClipInvariants.violation),
            ("clip-container", ClipSeeds.all, ClipInvariants.containerViolation),
        ]
    }

    @Test func theSeedsAreAnimationsAndHoldNoViolation() throws {
        for target in Self.targets {
            for (index, seed) in target.seeds.enumerated() {
                #expect(throws: Never.self, "\(target.name) \(index)") {
                    try Animation.compose(seed, limits: Composition.limits)
                }
                #expect(seed.withUnsafeBytes(target.check) == nil, "\(target.name) \(index)")
            }
        }
    }

    @Test func changedAndCutSeedsHoldNoViolation() {
        let telling: [UInt8] = [0, 1, 2, 3, 6, 8, 13, 16, 26, 0x41, 0x50, 0x7f, 0x80, 0xfe, 0xff]
        var mutator = ByteMutator(seed: 2, telling: telling)
        for target in Self.targets {
            for seed in target.seeds where seed.count < 2000 {
                for step in 0..<40 {
                    let changed = mutator.mutate(seed)
                    for input in [changed, Array(changed.prefix(changed.count * step / 40))] {
                        #expect(input.withUnsafeBytes(target.check) == nil, "\(target.name): \(input)")
                    }
                }
            }
        }
    }
}

internal import Foundation

/// Pseudorandom numbers from a seed (SplitMix64), so that a failure can be reproduced.
package struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        // The multiplication keeps the sequences of neighbouring seeds from overlapping.
        state = seed &* 0x9e37_79b9_7f4a_7c15
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}

/// Runs the test of a property with numbers from a new seed, and prints the seed.
///
/// `GIFREEL_SEED` sets the seed, which repeats a run that failed.
package func withPrintedSeed<Value>(
    _ test: String = #function, _ body: (inout SeededNumbers) throws -> Value
) rethrows -> Value {
    let given = ProcessInfo.processInfo.environment["GIFREEL_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0..<1 << 32)
    print("\(test): GIFREEL_SEED=\(seed)")
    var numbers = SeededNumbers(seed: seed)
    return try body(&numbers)
}

/// Mutates inputs like a fuzzer, but in the same way in every run.
package struct ByteMutator {
    private var random: SeededNumbers
    private let telling: [UInt8]

    /// - Parameter telling: Bytes that have a meaning for the reader of the input.
    package init(seed: UInt64, telling: [UInt8]) {
        random = SeededNumbers(seed: seed)
        self.telling = telling
    }

    /// Returns the input with one to four bytes changed, removed or inserted, or with a part repeated.
    package mutating func mutate(_ input: [UInt8]) -> [UInt8] {
        var input = input
        for _ in 0..<Int.random(in: 1...4, using: &random) where !input.isEmpty {
            let position = Int.random(in: 0..<input.count, using: &random)
            let byte = telling.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<4, using: &random) {
            case 0: input[position] = byte
            case 1: input.remove(at: position)
            case 2: input.insert(byte, at: position)
            default:
                let end = min(input.count, position + Int.random(in: 1...8, using: &random))
                input.insert(contentsOf: input[position..<end], at: Int.random(in: 0...input.count, using: &random))
            }
        }
        return input
    }
}

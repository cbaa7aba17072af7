internal import Foundation

/// Numbers that a seed decides (SplitMix64), so that what fails can be repeated.
package struct SeededNumbers: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) {
        // Multiplied, so that the sequences of neighbouring seeds do not overlap.
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
/// `GIFREEL_SEED` sets the seed, to repeat a run that failed.
package func withPrintedSeed<Value>(
    _ test: String = #function, _ body: (inout SeededNumbers) throws -> Value
) rethrows -> Value {
    let given = ProcessInfo.processInfo.environment["GIFREEL_SEED"].flatMap { UInt64($0) }
    let seed = given ?? UInt64.random(in: 0..<1 << 32)
    print("\(test): GIFREEL_SEED=\(seed)")
    var numbers = SeededNumbers(seed: seed)
    return try body(&numbers)
}

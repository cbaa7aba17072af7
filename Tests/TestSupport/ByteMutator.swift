/// The same numbers in every run (SplitMix64), so that a failure can be repeated.
package struct RepeatableNumbers: RandomNumberGenerator {
    private var state: UInt64

    package init(seed: UInt64) {
        state = seed
    }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }
}

/// Changes inputs a little, as a fuzzer does, the same way in every run.
package struct ByteMutator {
    private var random: RepeatableNumbers
    private let telling: [UInt8]

    /// - Parameter telling: Bytes that mean something to whoever reads the input.
    package init(seed: UInt64, telling: [UInt8]) {
        random = RepeatableNumbers(seed: seed)
        self.telling = telling
    }

    /// The input with one to four bytes changed, taken out, put in, or a piece of it repeated.
    package mutating func mutate(_ input: [UInt8]) -> [UInt8] {
        var input = input
        for _ in 0..<Int.random(in: 1...4, using: &random) where !input.isEmpty {
            let place = Int.random(in: 0..<input.count, using: &random)
            let byte = telling.randomElement(using: &random) ?? 0
            switch Int.random(in: 0..<4, using: &random) {
            case 0: input[place] = byte
            case 1: input.remove(at: place)
            case 2: input.insert(byte, at: place)
            default:
                let end = min(input.count, place + Int.random(in: 1...8, using: &random))
                input.insert(contentsOf: input[place..<end], at: Int.random(in: 0...input.count, using: &random))
            }
        }
        return input
    }
}

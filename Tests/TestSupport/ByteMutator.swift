/// Changes inputs a little, as a fuzzer does, the same way in every run.
package struct ByteMutator {
    private var random: SeededNumbers
    private let telling: [UInt8]

    /// - Parameter telling: Bytes that mean something to whoever reads the input.
    package init(seed: UInt64, telling: [UInt8]) {
        random = SeededNumbers(seed: seed)
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

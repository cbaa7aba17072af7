/// Names requests by the first segment of their target, without parsing it whole.
struct RouteNames {
    let names: [String]
    private var indices: [Word: Int] = [:]
    /// The segment before and its index: most requests are for the same route as the one before.
    private var latest = (word: Word(), index: other)

    /// A segment of up to sixteen bytes as two numbers, so that a look-up makes no string.
    private struct Word: Hashable {
        var low: UInt64 = 0
        var high: UInt64 = 0

        /// No segment at all.
        init() {}

        /// The first segment of a target; nil where it is longer.
        init?(target: UnsafeRawBufferPointer) {
            var index = 1
            while index < target.count {
                let byte = target[index]
                if byte == UInt8(ascii: "/") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: ",") { return }
                guard index <= 16 else { return nil }
                let shift = UInt64(8 * (index - 1))
                if shift < 64 { low |= UInt64(byte) << shift } else { high |= UInt64(byte) << (shift - 64) }
                index += 1
            }
        }

        init?(segment: String) {
            let word = Array("/\(segment)".utf8).withUnsafeBytes { Word(target: $0) }
            guard let word else { return nil }
            self = word
        }
    }

    private static let other = 0
    private static let home = 1
    private static let mount = 2

    /// - Parameter mounts: Names of mounts, which share one route: they are the user's, and may be many.
    init(mounts: some Sequence<String>) {
        names = ["other", "home", "mount"] + Route.reservedNames.sorted()
        for (index, name) in names.enumerated().dropFirst(3) {
            if let word = Word(segment: name) { indices[word] = index }
        }
        for name in mounts {
            if let word = Word(segment: name) { indices[word] = Self.mount }
        }
        indices[Word()] = Self.home
        latest = (Word(), Self.home)
    }

    /// The index of a target's name.
    mutating func index(of target: UnsafeRawBufferPointer) -> Int {
        guard let word = Word(target: target) else { return Self.other }
        if word != latest.word { latest = (word, indices[word] ?? Self.other) }
        return latest.index
    }
}

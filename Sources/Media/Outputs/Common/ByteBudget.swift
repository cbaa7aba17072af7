/// The search for a quality at which a file stays within the bytes that a request allows (the option `max_bytes`).
///
/// The quality of the second attempt follows from the size of the first and from what is usual for the content; most files then
/// fit. A file that does not fit is tried up to twice at the quality that the first and the last size suggest, and finally at
/// ``lowest``.
struct ByteBudget {
    /// The version that becomes part of the name of an object with a budget. Change it with anything that changes the search.
    static let version = "budget-2"
    /// The lowest quality that is tried.
    static let lowest = 10

    private let budget: Int
    private let isDrawing: Bool
    /// The attempts, from the first to the last.
    private var attempts: [(quality: Int, bytes: Int)] = []

    /// - Parameter isDrawing: Whether the pictures are drawings, whose files shrink more slowly.
    init(_ budget: Int, isDrawing: Bool) {
        self.budget = budget
        self.isDrawing = isDrawing
    }

    /// Returns the quality for the attempt after a file of `bytes`; nil if this file fits.
    ///
    /// - Throws: ``TranscodeError/overBudget(smallest:maximum:)`` if the file has the lowest quality.
    mutating func next(after bytes: Int, at quality: Int) throws(TranscodeError) -> Int? {
        attempts.append((quality, bytes))
        guard bytes > budget else { return nil }
        guard quality > Self.lowest else {
            throw .overBudget(smallest: attempts.map(\.bytes).min() ?? bytes, maximum: budget)
        }
        switch attempts.count {
        case 1: return lower(quality, after: bytes, perMille: isDrawing ? 975 : 950)
        case 2, 3: return lower(quality, after: bytes, perMille: slope(to: (quality, bytes)))
        default: return Self.lowest
        }
    }

    /// Thousandths of the bytes that remain per step of quality, estimated from the first attempt and the last, and rounded up.
    private func slope(to last: (quality: Int, bytes: Int)) -> Int {
        let first = attempts[0]
        var perMille = Self.flattest
        let steps = first.quality - last.quality
        while perMille > 800, Self.bytes(first.bytes, steps: steps, perMille: perMille - 1) >= last.bytes {
            perMille -= 1
        }
        return perMille
    }

    /// The highest estimate. Sizes fall in leaps: if the first steps save hardly any bytes, later ones save more. A higher
    /// estimate would lead to the lowest quality.
    private static let flattest = 990

    private func lower(_ quality: Int, after bytes: Int, perMille: Int) -> Int {
        var steps = 0
        while quality - steps > Self.lowest, Self.bytes(bytes, steps: steps, perMille: perMille) > budget { steps += 1 }
        return max(Self.lowest, quality - steps - Self.margin)
    }

    /// Steps in addition to those that the sizes suggest.
    private static let margin = 2

    /// Uses integer arithmetic: the last bits of a logarithm differ between C libraries.
    private static func bytes(_ bytes: Int, steps: Int, perMille: Int) -> Int {
        var bytes = bytes
        for _ in 0..<steps { bytes = bytes * perMille / 1000 }
        return bytes
    }
}

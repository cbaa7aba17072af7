/// The rows of an image in the order in which they are coded: four passes where it is interlaced (GIF89a Appendix E).
struct InterlacedRows: IteratorProtocol {
    private static let passes: [(start: Int, step: Int)] = [(0, 8), (4, 8), (2, 4), (1, 2)]
    private let count: Int
    private var row = 0
    private var step = 1
    /// The pass to go on with; past the last one, there is none.
    private var pass = 4

    init(count: Int, isInterlaced: Bool) {
        self.count = count
        if isInterlaced {
            step = Self.passes[0].step
            pass = 1
        }
    }

    mutating func next() -> Int? {
        while row >= count {
            guard pass < Self.passes.count else { return nil }
            row = Self.passes[pass].start
            step = Self.passes[pass].step
            pass += 1
        }
        defer { row += step }
        return row
    }
}

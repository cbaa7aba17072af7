/// Chooses a palette by median cut (Heckbert 1982) and three rounds of k-means. Uses integer arithmetic, so that the same
/// colours yield the same palette everywhere. Not thread-safe.
final class ColorQuantizer {
    private static let rounds = 3

    /// The most cells that cost little time.
    private static let mostCells = 4096
    private static let fewestBits = 5
    /// The size of the hash table: a power of two, twice the cells of the fewest bits.
    private static let slots = 1 << 16

    /// Similar colours that are counted together.
    private struct Cell {
        /// The bits that the colours share.
        var key: UInt32 = 0
        var count = 0
        var red = 0
        var green = 0
        var blue = 0

        subscript(component: Int) -> Int { (component == 0 ? red : component == 1 ? green : blue) / max(1, count) }

        mutating func add(_ other: Cell) {
            count &+= other.count
            red &+= other.red
            green &+= other.green
            blue &+= other.blue
        }
    }

    /// The bits of each component that distinguish colours: as many as ``mostCells`` allow.
    private var bits = 8
    /// An open-addressing table with linear probing.
    private let cells: HeapBuffer<Cell>
    /// The slots of the cells.
    private var used: [Int] = []
    /// The index of each cell's colour in the palette.
    private let nearest: HeapBuffer<UInt8>

    init() throws(TranscodeError) {
        cells = try HeapBuffer(repeating: Cell(), count: Self.slots)
        nearest = try HeapBuffer(repeating: 0, count: Self.slots)
    }

    /// Forgets all colours.
    func begin(bits: Int = 8) {
        for slot in used { cells.base[slot] = Cell() }
        used.removeAll(keepingCapacity: true)
        self.bits = bits
    }

    func count(_ color: UInt32) {
        add(
            Cell(
                key: color, count: 1, red: Int(color & 255), green: Int(color >> 8 & 255), blue: Int(color >> 16 & 255)))
        while used.count > Self.mostCells, bits > Self.fewestBits {
            let finer = used.map { cells.base[$0] }
            begin(bits: bits - 1)
            finer.forEach(add)
        }
    }

    private func add(_ other: Cell) {
        let slot = slot(of: other.key)
        if cells.base[slot].count == 0 { used.append(slot) }
        cells.base[slot].key = key(other.key)
        cells.base[slot].add(other)
    }

    /// Returns the palette index for a counted colour.
    func index(of color: UInt32) -> Int { Int(nearest.base[slot(of: color)]) }

    private func key(_ color: UInt32) -> UInt32 { color & (0x01_0101 &* (0xff &<< UInt32(8 &- bits) & 0xff)) }

    /// Returns the slot of a colour's cell, or the empty slot for it.
    private func slot(of color: UInt32) -> Int {
        let key = key(color)
        var slot = Int((key &* 0x9e37_79b1) >> 16)
        while cells.base[slot].count > 0, cells.base[slot].key != key { slot = (slot &+ 1) & (Self.slots &- 1) }
        return slot
    }

    /// Chooses up to `most` opaque colours.
    func palette(_ most: Int) -> [UInt32] {
        var means = boxes(used, most).map(mean)
        for round in 0...Self.rounds {
            var sums = [Cell](repeating: Cell(), count: means.count)
            for index in used {
                let cell = cells.base[index]
                let choice = Self.nearest((cell[0], cell[1], cell[2]), means)
                nearest.base[index] = UInt8(truncatingIfNeeded: choice)
                sums[choice].add(cell)
            }
            // The last round only assigns.
            if round == Self.rounds { break }
            for index in means.indices where sums[index].count > 0 {
                means[index] = (sums[index][0], sums[index][1], sums[index][2])
            }
        }
        return means.map { UInt32($0.0) | UInt32($0.1) << 8 | UInt32($0.2) << 16 | PixelFormat.opaque }
    }

    private static func nearest(_ color: (Int, Int, Int), _ means: [(Int, Int, Int)]) -> Int {
        var (best, least) = (0, Int.max)
        for (index, mean) in means.enumerated() {
            let (red, green, blue) = (color.0 &- mean.0, color.1 &- mean.1, color.2 &- mean.2)
            let distance = red &* red &+ green &* green &+ blue &* blue
            if distance < least { (best, least) = (index, distance) }
        }
        return best
    }

    private func mean(_ box: ArraySlice<Int>) -> (Int, Int, Int) {
        var sum = Cell()
        for index in box { sum.add(cells.base[index]) }
        return (sum[0], sum[1], sum[2])
    }

    /// Splits cells into up to `most` boxes, each time splitting the box with the largest squared error.
    private func boxes(_ used: [Int], _ most: Int) -> [ArraySlice<Int>] {
        var boxes = [(cells: used[...], spread: spread(used[...]))]
        while boxes.count < most, let index = boxes.indices.max(by: { boxes[$0].spread.error < boxes[$1].spread.error }),
            boxes[index].spread.error > 0
        {
            let (cells, spread) = boxes[index]
            let sorted = cells.sorted { (value($0, spread.component), $0) < (value($1, spread.component), $1) }
            let middle = mean(cells)
            let mean = spread.component == 0 ? middle.0 : spread.component == 1 ? middle.1 : middle.2
            let split = min(max(1, sorted.firstIndex { value($0, spread.component) > mean } ?? 1), sorted.count - 1)
            let parts = [sorted[..<split], sorted[split...]]
            boxes[index] = (parts[0], self.spread(parts[0]))
            boxes.append((parts[1], self.spread(parts[1])))
        }
        return boxes.map(\.cells)
    }

    private func value(_ cell: Int, _ component: Int) -> Int { cells.base[cell][component] }

    /// Returns the component in which a box's cells differ most, and the sum of the squared differences from its mean.
    private func spread(_ box: ArraySlice<Int>) -> (component: Int, error: Int) {
        if box.count < 2 { return (0, 0) }
        let middle = mean(box)
        var errors = [0, 0, 0]
        for index in box {
            let cell = cells.base[index]
            for (component, mean) in [middle.0, middle.1, middle.2].enumerated() {
                let difference = cell[component] - mean
                errors[component] += cell.count * difference * difference
            }
        }
        let component = (0..<3).max { errors[$0] < errors[$1] } ?? 0
        return (component, errors[component])
    }
}

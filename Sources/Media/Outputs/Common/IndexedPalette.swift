/// Up to 256 colours by index. The first index may be reserved for transparent pixels.
struct IndexedPalette {
    /// The size of the hash table: a power of two, four times the maximum number of colours, so that probe sequences are short.
    private static let slots = 1024

    /// R, G, B, A. If the first index is transparent, its entry is 0.
    private(set) var colors: [UInt32]
    let hasTransparency: Bool
    /// An open-addressing table with linear probing: the index of a colour, or -1 in an empty slot.
    private var table = [Int16](repeating: -1, count: Self.slots)

    init(hasTransparency: Bool) {
        self.hasTransparency = hasTransparency
        colors = hasTransparency ? [0] : []
    }

    /// The index of a colour; nil if the palette lacks it.
    func index(of color: UInt32) -> UInt8? {
        let index = table[slot(of: color)]
        return index < 0 ? nil : UInt8(index)
    }

    /// Adds a colour unless the palette has it.
    ///
    /// - Returns: False if the palette is full.
    mutating func add(_ color: UInt32) -> Bool {
        let slot = slot(of: color)
        if table[slot] >= 0 { return true }
        if colors.count == 256 { return false }
        table[slot] = Int16(colors.count)
        colors.append(color)
        return true
    }

    /// The number of bits of the highest index, at least 1.
    var bits: Int { Self.bits(colors.count) }

    /// The number of bits that indices below `count` need, at least 1.
    static func bits(_ count: Int) -> Int { (1...8).first { count <= 1 << $0 } ?? 8 }

    /// The colour table (GIF89a §19): red, green and blue of 2, 4, 8… entries.
    var bytes: [UInt8] {
        var bytes = colors.flatMap {
            [UInt8(truncatingIfNeeded: $0), UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0 >> 16)]
        }
        bytes += [UInt8](repeating: 0, count: 3 * (1 << bits) - bytes.count)
        return bytes
    }

    /// Returns the slot of a colour, or the empty slot for it.
    private func slot(of color: UInt32) -> Int {
        var slot = Int(truncatingIfNeeded: (color &* 0x9e37_79b1) >> 22)
        while table[slot] >= 0 && colors[Int(table[slot])] != color { slot = (slot + 1) & (Self.slots - 1) }
        return slot
    }
}

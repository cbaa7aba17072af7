/// How far dither moves a pixel of each colour: the distance to the neighbouring entries of its palette.
///
/// Colours are looked up by their upper five bits per component, so the table is small and needs no palette per pixel. Colours
/// that are in no palette do not move. Not thread-safe.
struct PaletteReach: ~Copyable {
    /// The unit of a distance is a quarter of a level.
    static let unit = 4
    /// Dither does not mix neighbours farther apart, in levels: their mixture would not look like a colour in between.
    private static let farthest = 40
    /// The number of nearest entries whose mean distance counts.
    private static let neighbours = 3

    private let table: HeapBuffer<UInt8>
    private let format: PixelFormat
    /// The palette that was entered last.
    private var colors: [RGB] = []

    init(_ format: PixelFormat) throws(TranscodeError) {
        self.format = format
        table = try HeapBuffer(repeating: 0, count: 1 << 15)
    }

    /// Enters the palette of the decoder's frame.
    mutating func enter<Decoder: AnimationDecoder & ~Copyable>(_ decoder: borrowing Decoder) {
        var new: [RGB] = []
        decoder.forEachPaletteColor { _, color in new.append(color) }
        guard new != colors else { return }
        colors = new
        let distinct = Array(Set(new))
        let cells = distinct.map { Self.cell(of: format.pack($0), format) }
        for cell in cells { table.base[cell] = 0 }
        // The order of a set differs from process to process, so the result must not depend on it.
        for (color, cell) in zip(distinct, cells) {
            table.base[cell] = max(table.base[cell], Self.reach(of: color, among: distinct))
        }
    }

    /// The distance for a pixel of the format, in quarters of a level.
    @inline(__always)
    func lookUp(_ word: UInt32) -> Int32 {
        if case .rgba = format, word < PixelFormat.opaque { return 0 }
        return Int32(table.base[Self.cell(of: word, format)])
    }

    @inline(__always)
    private static func cell(of word: UInt32, _ format: PixelFormat) -> Int {
        switch format {
        case .yuv: index(word >> 3, word >> 15, word >> 27)
        case .rgba: index(word >> 3, word >> 11, word >> 19)
        }
    }

    /// The cell of three components, by their lowest five bits.
    @inline(__always)
    private static func index(_ first: UInt32, _ second: UInt32, _ third: UInt32) -> Int {
        Int((first & 31) << 10 | (second & 31) << 5 | (third & 31))
    }

    private static func reach(of color: RGB, among colors: [RGB]) -> UInt8 {
        // The nearest distances in increasing order.
        var nearest = [Int](repeating: farthest, count: neighbours)
        for other in colors where other != color {
            let red = abs(Int(color.red) - Int(other.red))
            let green = abs(Int(color.green) - Int(other.green))
            let blue = abs(Int(color.blue) - Int(other.blue))
            var distance = max(red, green, blue)
            for place in 0..<neighbours where distance < nearest[place] { swap(&distance, &nearest[place]) }
        }
        // A colour without a neighbour within the limit does not move.
        if nearest[0] == farthest { return 0 }
        return UInt8(nearest.reduce(0, +) * unit / neighbours)
    }
}

internal import CGIF

/// A palette as canvas pixels: 256 entries, so that every index an image can hold has one.
struct ColorTable: ~Copyable {
    private let storage: HeapBuffer<UInt32>
    /// Whether the entries are the global palette's, which need not be converted again.
    private var holdsGlobal = false

    init() throws(TranscodeError) {
        storage = try HeapBuffer(count: 256)
        storage.base.initialize(repeating: 0, count: 256)
    }

    var entries: UnsafeMutablePointer<UInt32> { storage.base }

    /// Converts the palette that the reader's frame is drawn by.
    mutating func load(from reader: borrowing GIFReader, format: PixelFormat) {
        let isGlobal = !reader.frame.hasLocalPalette
        if isGlobal && holdsGlobal { return }
        let entries = entries
        reader.withPalette { palette in
            for index in 0..<256 {
                let color =
                    index < palette.count
                    ? RGB(red: palette[index].Red, green: palette[index].Green, blue: palette[index].Blue)
                    : GIFQuirks.missingColor
                entries[index] = format.pack(color)
            }
        }
        holdsGlobal = isGlobal
    }
}

/// The colours, including alpha, of a picture with at most 256 colours, like most frames of GIFs.
struct PicturePalette {
    /// The size of the hash table: a power of two, four times the maximum number of colours, so that probe sequences are short.
    private static let slots = 1024

    /// The colours in order of appearance.
    private(set) var colors: [UInt32] = []
    /// An open-addressing table with linear probing: the index of a colour, or -1 in an empty slot.
    private var table = [Int16](repeating: -1, count: Self.slots)

    /// Returns nil if the picture has more colours.
    init?(_ picture: borrowing StillPicture) {
        var last: UInt32?
        for index in 0..<picture.width * picture.height {
            let word = picture.words[index]
            if word == last { continue }
            last = word
            let slot = slot(of: word)
            if table[slot] >= 0 { continue }
            if colors.count == 256 { return nil }
            table[slot] = Int16(colors.count)
            colors.append(word)
        }
    }

    /// Returns the slot of a colour, or the empty slot for it.
    private func slot(of word: UInt32) -> Int {
        var slot = Int(truncatingIfNeeded: (word &* 0x9e37_79b1) >> 22)
        while table[slot] >= 0 && colors[Int(table[slot])] != word { slot = (slot + 1) & (Self.slots - 1) }
        return slot
    }

    /// Writes the index of each pixel's colour.
    func index(_ picture: borrowing StillPicture, into indices: UnsafeMutablePointer<UInt8>) {
        for position in 0..<picture.width * picture.height {
            indices[position] = UInt8(truncatingIfNeeded: table[slot(of: picture.words[position])])
        }
    }
}

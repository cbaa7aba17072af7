extension IndexedPalette {
    /// The colours, including alpha, of a picture; nil if it has more than 256, unlike most frames of GIFs.
    init?(_ picture: borrowing StillPicture) {
        self.init(hasTransparency: false)
        var last: UInt32?
        for index in 0..<picture.width * picture.height {
            let word = picture.words[index]
            if word == last { continue }
            last = word
            guard add(word) else { return nil }
        }
    }

    /// Writes the index of each pixel's colour.
    func index(_ picture: borrowing StillPicture, into indices: UnsafeMutablePointer<UInt8>) {
        for position in 0..<picture.width * picture.height {
            indices[position] = index(of: picture.words[position]) ?? 0
        }
    }
}

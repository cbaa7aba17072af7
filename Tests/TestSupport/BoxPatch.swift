/// Changes the boxes of an ISO base media file in place (ISO/IEC 14496-12 §4.2), to make files that no program writes.
package struct BoxPatch {
    package private(set) var bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The positions of a type of four characters: of its first character.
    package func positions(_ type: String) -> [Int] {
        let name = Array(type.utf8)
        return bytes.indices.dropLast(3).filter { bytes[$0] == name[0] && bytes[$0..<$0 + 4].elementsEqual(name) }
    }

    /// Writes over the bytes at a distance from the first character of a box's type.
    package func writing(_ new: [UInt8], at offset: Int, of type: String, number: Int = 0) -> BoxPatch {
        var result = self
        let places = positions(type)
        guard number < places.count, places[number] + offset + new.count <= bytes.count else { return self }
        result.bytes.replaceSubrange(places[number] + offset..<places[number] + offset + new.count, with: new)
        return result
    }

    /// Gives a box another type of four characters.
    package func renaming(_ type: String, _ other: String, number: Int = 0) -> BoxPatch {
        writing(Array(other.utf8), at: 0, of: type, number: number)
    }

    /// Exchanges the first two boxes of a type, which must follow each other.
    package func swapping(_ type: String) -> BoxPatch {
        let starts = positions(type).map { $0 - 4 }
        guard starts.count == 2 else { return self }
        let (first, second) = (Array(bytes[starts[0]..<starts[1]]), Array(bytes[starts[1]..<starts[1] + size(starts[1])]))
        var result = self
        result.bytes.replaceSubrange(starts[0]..<starts[1] + second.count, with: second + first)
        return result
    }

    /// Adds a second one to a list of sample descriptions, the first of the types in the path being the outermost. Boxes that follow
    /// are moved, so samples must precede.
    package func insertingCopy(of type: String, in path: [String]) -> BoxPatch {
        guard let start = positions(type).last.map({ $0 - 4 }) else { return self }
        var result = self
        let copy = Array(bytes[start..<start + size(start)])
        result.bytes.insert(contentsOf: copy, at: start)
        for outer in path {
            guard let place = positions(outer).first.map({ $0 - 4 }) else { return self }
            let length = size(place) + copy.count
            for index in 0..<4 { result.bytes[place + index] = UInt8(length >> (24 - 8 * index) & 255) }
        }
        return result.writing([0, 0, 0, 2], at: 8, of: "stsd")
    }

    /// Adds a box at the end of the last box of a path, whose outermost is the first. Boxes that follow are moved, so samples
    /// must precede.
    package func appending(_ type: String, _ body: [UInt8], in path: [String]) -> BoxPatch {
        var result = self
        let places = path.compactMap { positions($0).last.map { $0 - 4 } }
        guard let inner = places.last, places.count == path.count else { return self }
        func number(_ value: Int) -> [UInt8] { (0..<4).map { UInt8(value >> (24 - 8 * $0) & 255) } }
        let box = number(body.count + 8) + type.utf8 + body
        result.bytes.insert(contentsOf: box, at: inner + size(inner))
        for place in places { result.bytes.replaceSubrange(place..<place + 4, with: number(size(place) + box.count)) }
        return result
    }

    private func size(_ start: Int) -> Int { bytes[start..<start + 4].reduce(0) { $0 << 8 | Int($1) } }
}

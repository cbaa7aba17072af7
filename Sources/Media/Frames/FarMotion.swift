/// Measures the share of changes that come from far away in the previous picture, as in a scrolling page: beyond an encoder's
/// usual motion search, but within a wide one.
///
/// Searches the previous picture for exact copies of rows of pixels at other places. Films, whose pixels change as they move,
/// have next to none.
struct FarMotion: ~Copyable {
    /// The range of the usual motion search to each side, in pixels, and that of a wide one.
    private static let near = 16
    private static let far = 112
    /// The number of pixels in a row to search for.
    private static let length = 16
    /// The minimum number of colour changes in a row to search for. Plain rows are everywhere.
    private static let fewestEdges = 2
    private static let mostRows = 512
    /// The minimum changed share of a picture, in per cent. A search over fewer changes is cheap in any case.
    private static let leastChange = 25
    private static let mostPictures = 4

    /// A row of pixels of the newer picture.
    private struct Row {
        let hash: UInt64
        let x: Int
        let y: Int
        /// The distance to the nearest copy of the row in the older picture, in pixels along the longer axis.
        var distance = Int.max
    }

    /// The number of examined pictures.
    private var pictures = 0
    /// The number of rows searched for, and of those found far away but not near.
    private var rows = 0
    private var farRows = 0

    /// The share of rows that come from far away, 0…1.
    var share: Double { rows > 0 ? Double(farRows) / Double(rows) : 0 }

    /// Searches the previous picture for rows from the blocks of a picture.
    ///
    /// - Parameters:
    ///   - places: The blocks that differ.
    ///   - blocks: The number of all blocks.
    mutating func look(
        at picture: borrowing Canvas, _ places: [BlockPlace], of blocks: Int, in previous: borrowing Canvas
    ) {
        guard pictures < Self.mostPictures, places.count * 100 >= blocks * Self.leastChange else { return }
        guard picture.width >= Self.length else { return }
        pictures += 1
        var wanted = RowTable()
        let step = max(1, places.count / Self.mostRows)
        for index in stride(from: 0, to: places.count, by: step) {
            let block = places[index].rectangle(in: picture)
            // Another row in each block, so that patterns of rows are not missed.
            let y = block.y + index * 7 % BlockContents.side
            guard block.width == Self.length, y < block.maxY else { continue }
            let (start, old) = (picture.pixels + y * picture.width + block.x, previous.pixels + y * picture.width + block.x)
            var edges = 0
            var difference: UInt32 = 0
            var hash: UInt64 = 0
            for x in 0..<Self.length {
                if x > 0 && start[x] != start[x - 1] { edges += 1 }
                difference |= start[x] ^ old[x]
                hash = hash &* Self.multiplier &+ UInt64(start[x])
            }
            if edges >= Self.fewestEdges && difference != 0 { wanted.insert(Row(hash: hash, x: block.x, y: y)) }
        }
        guard !wanted.rows.isEmpty else { return }
        for y in 0..<previous.height { Self.find(&wanted, previous, y: y) }
        rows += wanted.rows.count
        farRows += wanted.rows.count { $0.distance > Self.near && $0.distance <= Self.far }
    }

    private static let multiplier: UInt64 = 0x9e37_79b9_7f4a_7c15
    /// The factor of a pixel in the rolling hash when it leaves the row.
    private static let last: UInt64 = (0..<length).reduce(1) { power, _ in power &* multiplier }

    /// Compares all rows of pixels at one height of the older picture with the wanted rows.
    private static func find(_ wanted: inout RowTable, _ picture: borrowing Canvas, y: Int) {
        let pixels = picture.pixels + y * picture.width
        let (multiplier, last) = (multiplier, last)
        var hash: UInt64 = 0
        for x in 0..<length - 1 { hash = hash &* multiplier &+ UInt64(pixels[x]) }
        for x in length - 1..<picture.width {
            hash = hash &* multiplier &+ UInt64(pixels[x])
            if x >= length { hash = hash &- last &* UInt64(pixels[x - length]) }
            wanted.found(hash, x: x - length + 1, y: y)
        }
    }

    /// A hash table of rows.
    private struct RowTable {
        private static let bits = 12
        private(set) var rows: [Row] = []
        /// Indices into ``rows`` plus 1, each in the first free slot at or after its hash; 0 for a free slot.
        private var places = [UInt16](repeating: 0, count: 1 << bits)

        private func place(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash &>> UInt64(64 - Self.bits)) }

        mutating func insert(_ row: Row) {
            var place = place(row.hash)
            while places[place] != 0 { place = (place + 1) & (places.count - 1) }
            rows.append(row)
            places[place] = UInt16(rows.count)
        }

        mutating func found(_ hash: UInt64, x: Int, y: Int) {
            var place = place(hash)
            while true {
                let index = Int(places[place]) - 1
                if index < 0 { return }
                if rows[index].hash == hash {
                    rows[index].distance = min(rows[index].distance, max(abs(rows[index].x - x), abs(rows[index].y - y)))
                }
                place = (place + 1) & (places.count - 1)
            }
        }
    }
}

/// Compresses indices with GIF's LZW (GIF89a Appendix F), in data sub-blocks.
///
/// A pixel may have several valid indices: the transparent index where the canvas already shows its colour and, with a
/// tolerance, every similar colour. The longest string of the table that fits the next pixels is written. A full table is kept
/// until it codes less than half as many pixels per bit as while it grew. Not thread-safe.
struct GIFCompressor: ~Copyable {
    /// The indices of a rectangle, row by row.
    struct Pixels {
        let indices: UnsafePointer<UInt8>
        /// Nonzero where the transparent index has the same effect.
        let mayBeTransparent: UnsafePointer<UInt8>
        let count: Int
        /// Nil if no pixel may be transparent.
        let transparent: UInt8?
    }

    /// The colours that may replace one another.
    struct Tolerance {
        /// The squared distances between all colours: 256 rows of 256.
        let distances: UnsafePointer<Int32>
        /// The largest squared distance between colours that may replace one another.
        let most: Int32
        /// The number of colours.
        let colors: Int
    }

    /// Codes have at most 12 bits.
    private static let tableSize = 4096
    /// The number of codes after which a full table is evaluated.
    private static let window = 128
    /// The limit on strings that a search visits: a base, plus a number per pixel found so far. More rarely find a longer
    /// string.
    private static let visits = (least: 128, perPixel: 8)

    /// The first child of each string, and its next sibling; 0 for none.
    private let children: HeapBuffer<UInt16>
    private let siblings: HeapBuffer<UInt16>
    /// The last index of each string.
    private let values: HeapBuffer<UInt8>
    private let stack: HeapBuffer<Step>
    private let output: HeapBuffer<UInt8>
    /// The bytes written so far.
    private(set) var length = 0
    /// The position of the current sub-block's length.
    private var block = 0
    private var accumulator: UInt64 = 0
    private var bits: UInt64 = 0
    private var codeSize: UInt64 = 0
    private var clearCode = 0
    private var next = 0

    /// A string that fits the next pixels.
    struct Step {
        var code: Int
        var length: Int
        var error: Int
    }

    /// - Parameter pixels: The maximum number of pixels in a rectangle.
    init(pixels: Int) throws(TranscodeError) {
        let children = try HeapBuffer<UInt16>(count: Self.tableSize)
        let siblings = try HeapBuffer<UInt16>(count: Self.tableSize)
        let values = try HeapBuffer<UInt8>(count: Self.tableSize)
        let stack = try HeapBuffer<Step>(count: Self.tableSize)
        // A code takes at most a byte and a half, and a new table at most two bytes per 4096 pixels.
        output = try HeapBuffer<UInt8>(count: 2 * pixels + 64)
        self.children = children
        self.siblings = siblings
        self.values = values
        self.stack = stack
    }

    /// The minimum code size and the sub-blocks of the last rectangle.
    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: output.base, count: length) }

    /// Compresses a rectangle.
    ///
    /// - Parameter minimumCodeSize: 2…8; enough bits for every index.
    mutating func compress(_ pixels: Pixels, minimumCodeSize: Int, _ tolerance: Tolerance? = nil) {
        begin(minimumCodeSize)
        var position = 0
        /// The string written last; nil after a clear code.
        var previous: Int?
        var generation = (pixels: 0, bits: 0)
        var recent = (pixels: 0, codes: 0)
        while position < pixels.count {
            // The decoder extends the last string by the first index of the next string, which may be that extension itself.
            var entry = 0
            if let previous, next < Self.tableSize {
                entry = next
                let isFree = pixels.mayBeTransparent[position] != 0
                link(entry, under: previous, isFree ? pixels.transparent ?? pixels.indices[position] : pixels.indices[position])
            }
            let (match, first) = longest(pixels, at: position, entry: entry, tolerance)
            if entry != 0 { values.base[entry] = first }
            write(match.code)
            position += match.length
            previous = match.code
            if entry != 0 || next < Self.tableSize {
                generation = (generation.pixels + match.length, generation.bits + Int(codeSize))
                if entry == 0 { continue }
                next += 1
                if next == 1 << Int(codeSize), codeSize < 12 { codeSize += 1 }
                continue
            }
            recent = (recent.pixels + match.length, recent.codes + 1)
            guard recent.codes == Self.window, position < pixels.count else { continue }
            if 2 * recent.pixels * generation.bits < generation.pixels * recent.codes * Int(codeSize) {
                write(clearCode)
                clear()
                previous = nil
                generation = (0, 0)
            }
            recent = (0, 0)
        }
        write(clearCode + 1)
        end()
    }

    // MARK: Strings

    /// Finds the longest string of the table that fits. Among equally long strings, the one with the least error wins.
    ///
    /// - Parameter entry: The string that the decoder does not have yet; 0 for none. It fits only if the match begins with its
    ///   last index.
    /// - Returns: The string, and its first index.
    private func longest(
        _ pixels: Pixels, at position: Int, entry: Int, _ tolerance: Tolerance?
    ) -> (match: Step, first: UInt8) {
        var best = Step(code: 0, length: 0, error: 0)
        var first: UInt8 = 0
        var visits = 0
        func search(from root: UInt8, error: Int) {
            descend(pixels, at: position, from: root, error: error, entry: entry, tolerance, &best, &first, &visits)
        }
        let wanted = pixels.indices[position]
        if pixels.mayBeTransparent[position] != 0, let transparent = pixels.transparent { search(from: transparent, error: 0) }
        search(from: wanted, error: 0)
        if let tolerance {
            let row = tolerance.distances + 256 * Int(wanted)
            for color in 0..<tolerance.colors where row[color] <= tolerance.most {
                let color = UInt8(truncatingIfNeeded: color)
                if color != wanted { search(from: color, error: Int(row[Int(color)])) }
            }
        }
        return (best, first)
    }

    /// Searches the strings that begin with an index.
    private func descend(
        _ pixels: Pixels, at position: Int, from root: UInt8, error: Int, entry: Int, _ tolerance: Tolerance?,
        _ best: inout Step, _ first: inout UInt8, _ visits: inout Int
    ) {
        var count = 1
        stack.base[0] = Step(code: Int(root), length: 1, error: error)
        while count > 0 {
            count &-= 1
            let step = stack.base[count]
            if step.length > best.length || (step.length == best.length && step.error < best.error) {
                best = step
                first = root
            }
            let place = position &+ step.length
            visits &+= 1
            if place >= pixels.count || visits > Self.visits.least &+ Self.visits.perPixel &* best.length { continue }
            let wanted = pixels.indices[place]
            let isFree = pixels.mayBeTransparent[place] != 0
            var child = Int(children.base[step.code])
            while child != 0 {
                let value = values.base[child]
                var error = -1
                if value == wanted || (isFree && value == pixels.transparent) {
                    error = step.error
                } else if let tolerance {
                    let distance = tolerance.distances[256 &* Int(wanted) &+ Int(value)]
                    if distance <= tolerance.most { error = step.error &+ Int(distance) }
                }
                if error >= 0, child != entry || value == root {
                    stack.base[count] = Step(code: child, length: step.length &+ 1, error: error)
                    count &+= 1
                }
                child = Int(siblings.base[child])
            }
        }
    }

    private func link(_ code: Int, under parent: Int, _ value: UInt8) {
        values.base[code] = value
        children.base[code] = 0
        siblings.base[code] = children.base[parent]
        children.base[parent] = UInt16(truncatingIfNeeded: code)
    }

    private mutating func clear() {
        children.base.update(repeating: 0, count: clearCode)
        codeSize = UInt64(clearCode.trailingZeroBitCount) + 1
        next = clearCode + 2
    }

    // MARK: Codes

    private mutating func begin(_ minimumCodeSize: Int) {
        clearCode = 1 << minimumCodeSize
        output.base[0] = UInt8(truncatingIfNeeded: minimumCodeSize)
        (block, length) = (1, 2)
        (accumulator, bits) = (0, 0)
        clear()
        write(clearCode)
    }

    private mutating func write(_ code: Int) {
        accumulator |= UInt64(truncatingIfNeeded: code) &<< bits
        bits &+= codeSize
        while bits >= 8 { flushByte() }
    }

    private mutating func flushByte() {
        if length &- block == 256 {
            output.base[block] = 255
            block = length
            length &+= 1
        }
        output.base[length] = UInt8(truncatingIfNeeded: accumulator)
        length &+= 1
        accumulator &>>= 8
        bits = bits > 8 ? bits &- 8 : 0
    }

    private mutating func end() {
        while bits > 0 { flushByte() }
        output.base[block] = UInt8(length - block - 1)
        // The terminator.
        output.base[length] = 0
        length += 1
    }
}

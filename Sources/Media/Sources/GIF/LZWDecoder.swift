/// A decoder of GIF's variable-length-code LZW (GIF89a Appendix F), which accepts data sub-blocks one by one.
///
/// Each code stands for a string that is already in the output. The table holds its position and length, and one forward copy
/// expands the code. Every read and write stays inside the output's bounds: excess pixels are dropped, and an invalid code
/// ends the image.
struct LZWDecoder: ~Copyable {
    /// Codes have at most 12 bits.
    private static let maximumCodeSize: UInt32 = 12
    private static let tableSize = 4096
    /// Bytes after the last pixel that copies of 8-byte words may overwrite.
    static let slack = 8

    /// The positions of all codes' strings in the output, followed by the lengths of the strings.
    private let table: HeapBuffer<UInt32>

    private var output: UnsafeMutablePointer<UInt8>
    /// The number of pixels in the image. The memory at `output` is ``slack`` bytes longer.
    private var capacity = 0
    /// Pixels written so far, never more than the image has.
    private(set) var count = 0
    /// Whether the image's data has ended: by its end code, a full image, or an invalid code.
    private(set) var isFinished = true

    private var accumulator: UInt64 = 0
    private var bits: UInt32 = 0
    private var codeSize: UInt32 = 0
    private var minimumCodeSize: UInt32 = 0
    private var clearCode: UInt32 = 0
    private var next: UInt32 = 0
    private var previousStart: UInt32 = 0
    /// Length of the string written last; 0 right after a clear code.
    private var previousLength: UInt32 = 0

    /// Creates a decoder without an image.
    ///
    /// - Throws: ``TranscodeError/outOfMemory``.
    init() throws(TranscodeError) {
        table = try HeapBuffer(repeating: 0, count: 2 * Self.tableSize)
        output = UnsafeMutableRawPointer(table.base).assumingMemoryBound(to: UInt8.self)
    }

    /// Begins an image.
    ///
    /// - Parameters:
    ///   - minimumCodeSize: As coded, 0…255. An image draws nothing unless it is one of ``GIFQuirks/codeSizes``.
    ///   - output: Room for `pixels` indices and ``slack`` more bytes.
    ///   - pixels: Pixels of the image, fewer than 2³².
    mutating func begin(minimumCodeSize: Int, output: UnsafeMutablePointer<UInt8>, pixels: Int) {
        self.output = output
        capacity = pixels
        count = 0
        isFinished = pixels == 0 || !GIFQuirks.codeSizes.contains(minimumCodeSize)
        accumulator = 0
        bits = 0
        self.minimumCodeSize = UInt32(minimumCodeSize)
        clearCode = 1 << UInt32(minimumCodeSize)
        codeSize = self.minimumCodeSize + 1
        next = clearCode + 2
        previousLength = 0
    }

    /// Decodes one data sub-block. Does nothing once the image ``isFinished``.
    mutating func decode(_ block: UnsafeBufferPointer<UInt8>) {
        if isFinished { return }
        var position = 0
        // Locals keep the state that changes with every code in registers.
        var accumulator = self.accumulator
        var bits = self.bits
        var codeSize = self.codeSize
        var next = self.next
        var previousStart = self.previousStart
        var previousLength = self.previousLength
        var count = self.count
        let end = block.count
        let clearCode = self.clearCode
        let starts = table.base
        let lengths = table.base + Self.tableSize

        decoding: while true {
            while bits < codeSize {
                if position == end { break decoding }
                accumulator |= UInt64(block[position]) << UInt64(bits)
                position &+= 1
                bits &+= 8
            }
            let code = UInt32(truncatingIfNeeded: accumulator) & ((1 << codeSize) &- 1)
            accumulator >>= UInt64(codeSize)
            bits &-= codeSize

            let start = UInt32(truncatingIfNeeded: count)
            var length: UInt32 = 1
            if code < clearCode {
                output[count] = UInt8(truncatingIfNeeded: code)
            } else if code == clearCode {
                codeSize = minimumCodeSize + 1
                next = clearCode + 2
                previousLength = 0
                continue
            } else if code == clearCode &+ 1 || previousLength == 0 || code > next
                || (code == next && next >= UInt32(Self.tableSize))
            {
                isFinished = true
                break
            } else if code == next {
                // The code that is being defined now: the previous string and its own first pixel.
                length = previousLength &+ 1
                copy(from: previousStart, length: previousLength, to: count)
                if count + Int(previousLength) < capacity { output[count + Int(previousLength)] = output[Int(previousStart)] }
            } else {
                length = lengths[Int(code)]
                copy(from: starts[Int(code)], length: length, to: count)
            }

            if previousLength != 0 && next < UInt32(Self.tableSize) {
                // In the output, the first pixel of this string directly follows the previous string.
                starts[Int(next)] = previousStart
                lengths[Int(next)] = previousLength &+ 1
                next &+= 1
            }
            // Outside the branch above, because code sizes 0 and 1 need longer codes before the first string has been defined.
            if next >= (1 << codeSize) && codeSize < Self.maximumCodeSize { codeSize &+= 1 }
            previousStart = start
            previousLength = length
            count += Int(length)
            if count >= capacity {
                count = capacity
                isFinished = true
                break
            }
        }

        self.accumulator = accumulator
        self.bits = bits
        self.codeSize = codeSize
        self.next = next
        self.previousStart = previousStart
        self.previousLength = previousLength
        self.count = count
    }

    /// Copies a string that ends at or before `destination`, up to the end of the image.
    @inline(__always)
    private func copy(from start: UInt32, length: UInt32, to destination: Int) {
        let wanted = min(Int(length), capacity - destination)
        let source = UnsafeRawPointer(output + Int(start))
        let target = UnsafeMutableRawPointer(output + destination)
        // The last 8-byte word may extend past the string, into bytes that the next code overwrites or into the slack.
        var offset = 0
        while offset < wanted {
            let word = source.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            target.storeBytes(of: word, toByteOffset: offset, as: UInt64.self)
            offset &+= 8
        }
    }
}

/// Writes valid and invalid PNGs with and without animation, chunk by chunk (PNG third edition).
package struct APNGBuilder: Sendable {
    package struct Chunk: Sendable {
        package var type: String
        package var data: [UInt8]
        /// Whether the checksum is right.
        package var isSound = true

        package init(_ type: String, _ data: [UInt8] = []) {
            self.type = type
            self.data = data
        }
    }

    /// How samples are coded.
    package struct Coding: Sendable {
        /// 0 grey, 2 colour, 3 palette, 4 grey with alpha, 6 colour with alpha.
        package var type = 6
        /// Bits per sample.
        package var depth = 8
        package var isInterlaced = false

        package init(type: Int = 6, depth: Int = 8, isInterlaced: Bool = false) {
            self.type = type
            self.depth = depth
            self.isInterlaced = isInterlaced
        }

        package var channels: Int { [1, 0, 3, 1, 2, 0, 4][type] }
    }

    package struct Frame: Sendable {
        package var x = 0
        package var y = 0
        package var width: Int
        package var height: Int
        /// The samples of all pixels, row by row.
        package var samples: [Int]
        package var delay = (numerator: 1, denominator: 10)
        /// 0 none, 1 background, 2 previous.
        package var disposal = 0
        /// 0 source, 1 over.
        package var blend = 0
        /// The number of chunks that the pixels are split into.
        package var parts = 1

        package init(width: Int, height: Int, samples: [Int]) {
            self.width = width
            self.height = height
            self.samples = samples
        }

        /// A frame of words R, G, B, A, the first in the lowest byte.
        package init(width: Int, height: Int, words: [UInt32]) {
            self.init(
                width: width, height: height,
                samples: words.flatMap { word in (0..<4).map { Int(word >> UInt32(8 * $0) & 255) } })
        }

        /// A frame of one such word.
        package init(width: Int, height: Int, word: UInt32) {
            self.init(width: width, height: height, words: Array(repeating: word, count: width * height))
        }
    }

    package let width: Int
    package let height: Int
    package let coding: Coding
    /// All chunks so far, without `IEND`.
    package var chunks: [Chunk]
    private var frames = 0
    private var sequence = 0
    /// Where `acTL` is, whose number of frames is filled in at the end; nil for a still picture.
    private var animation: Int?

    /// Begins a file.
    ///
    /// - Parameters:
    ///   - plays: Nil leaves `acTL` out: the file is a still picture.
    ///   - head: Chunks between `IHDR` and `acTL`, such as `PLTE` and `tRNS`.
    package init(width: Int, height: Int, coding: Coding = Coding(), plays: Int? = 0, head: [Chunk] = []) {
        self.width = width
        self.height = height
        self.coding = coding
        let header =
            Self.number(width) + Self.number(height)
            + [UInt8(coding.depth), UInt8(coding.type), 0, 0, coding.isInterlaced ? 1 : 0]
        chunks = [Chunk("IHDR", header)] + head
        if let plays {
            animation = chunks.count
            chunks.append(Chunk("acTL", Self.number(0) + Self.number(plays)))
        }
    }

    /// Appends a frame; `change` modifies a plain one.
    package mutating func add(_ frame: Frame, _ change: (inout Frame) -> Void = { _ in }) {
        var frame = frame
        change(&frame)
        let isFirst = !chunks.contains { $0.type == "IDAT" }
        addControl(frame)
        addPixels(frame, as: isFirst ? "IDAT" : "fdAT")
    }

    /// Appends a picture that is no frame of the animation.
    package mutating func addPicture(_ frame: Frame) { addPixels(frame, as: "IDAT") }

    /// Appends only `fcTL`.
    package mutating func addControl(_ frame: Frame) {
        frames += 1
        let rectangle = [frame.width, frame.height, frame.x, frame.y].flatMap(Self.number)
        let times = [frame.delay.numerator, frame.delay.denominator].flatMap { Self.number($0)[2...] }
        chunks.append(
            Chunk("fcTL", nextSequence() + rectangle + times + [UInt8(frame.disposal), UInt8(frame.blend)]))
    }

    /// Appends only the pixels.
    package mutating func addPixels(_ frame: Frame, as type: String) {
        let data = Self.stored(scanlines(frame))
        let part = max(1, (data.count + frame.parts - 1) / frame.parts)
        for start in stride(from: 0, to: data.count, by: part) {
            let bytes = Array(data[start..<min(start + part, data.count)])
            chunks.append(Chunk(type, (type == "fdAT" ? nextSequence() : []) + bytes))
        }
    }

    /// Appends a frame whose pixels are compressed already.
    package mutating func add(_ stream: [UInt8], width: Int, height: Int) {
        let isFirst = !chunks.contains { $0.type == "IDAT" }
        addControl(Frame(width: width, height: height, samples: []))
        chunks.append(isFirst ? Chunk("IDAT", stream) : Chunk("fdAT", nextSequence() + stream))
    }

    /// The finished file.
    ///
    /// - Parameter count: The number of frames in `acTL`; nil for the right one.
    package func finish(frames count: Int? = nil) -> [UInt8] {
        var chunks = chunks + [Chunk("IEND")]
        if let animation { chunks[animation].data.replaceSubrange(0..<4, with: Self.number(count ?? frames)) }
        return Self.signature + chunks.flatMap(Self.bytes)
    }

    package static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

    /// A chunk with its length and checksum.
    package static func bytes(_ chunk: Chunk) -> [UInt8] {
        let body = Array(chunk.type.utf8) + chunk.data
        return number(chunk.data.count) + body + number(Int(crc32(body)) ^ (chunk.isSound ? 0 : 1))
    }

    /// A big-endian number of four bytes.
    package static func number(_ number: Int) -> [UInt8] {
        [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    private mutating func nextSequence() -> [UInt8] {
        defer { sequence += 1 }
        return Self.number(sequence)
    }

    // MARK: Pixels

    /// The rows of all passes, each after the number of the filter that changes nothing.
    private func scanlines(_ frame: Frame) -> [UInt8] {
        // Start and step of columns and rows of Adam7's passes (§8.2).
        let passes: [(x: Int, y: Int, dx: Int, dy: Int)] =
            coding.isInterlaced
            ? [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
            : [(0, 0, 1, 1)]
        var lines: [UInt8] = []
        for pass in passes {
            let columns = Array(stride(from: pass.x, to: frame.width, by: pass.dx))
            if columns.isEmpty { continue }
            for y in stride(from: pass.y, to: frame.height, by: pass.dy) {
                let samples = columns.flatMap { x in
                    (0..<coding.channels).map { frame.samples[(y * frame.width + x) * coding.channels + $0] }
                }
                lines += [0] + packed(samples)
            }
        }
        return lines
    }

    private func packed(_ samples: [Int]) -> [UInt8] {
        if coding.depth == 16 { return samples.flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] } }
        let perByte = 8 / coding.depth
        return stride(from: 0, to: samples.count, by: perByte).map { start in
            (0..<perByte).reduce(UInt8(0)) { byte, offset in
                let sample = start + offset < samples.count ? samples[start + offset] : 0
                return byte << UInt8(coding.depth % 8) | UInt8(sample)
            }
        }
    }

    /// A zlib stream of blocks without compression (RFC 1950, RFC 1951 §3.2.4).
    package static func stored(_ bytes: [UInt8]) -> [UInt8] {
        var stream: [UInt8] = [0x78, 0x01]
        var position = 0
        repeat {
            let count = min(bytes.count - position, 65_535)
            let isLast = position + count == bytes.count
            stream += [isLast ? 1 : 0, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8 & 255)]
            stream += bytes[position..<position + count]
            position += count
        } while position < bytes.count
        var (low, high) = (1, 0)
        for byte in bytes {
            low = (low + Int(byte)) % 65_521
            high = (high + low) % 65_521
        }
        return stream + number(high << 16 | low)
    }

    package static func crc32(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { crc, byte in crc >> 8 ^ remainders[Int(crc & 255) ^ Int(byte)] }
    }

    private static let remainders: [UInt32] = (0..<256).map { byte in
        (0..<8).reduce(byte) { crc, _ in crc >> 1 ^ (crc & 1 == 1 ? 0xedb8_8320 : 0) }
    }
}

internal import CWebPEncoder

/// Writes animated WebPs, chunk by chunk (RFC 9649). Pictures are encoded by libwebp.
package struct WebPBuilder: Sendable {
    package struct Frame: Sendable {
        /// Even, as the format demands.
        package var x = 0
        package var y = 0
        package var width: Int
        package var height: Int
        /// R, G, B, A, the first in the lowest byte.
        package var words: [UInt32]
        /// In milliseconds.
        package var delay = 100
        package var disposesToBackground = false
        package var blends = true
        /// 0…100 encodes with loss; nil without.
        package var quality: Float?

        package init(width: Int, height: Int, words: [UInt32]) {
            self.width = width
            self.height = height
            self.words = words
        }

        /// A frame of one colour.
        package init(width: Int, height: Int, word: UInt32) {
            self.init(width: width, height: height, words: Array(repeating: word, count: width * height))
        }
    }

    /// The chunks after the form `WEBP`.
    package private(set) var chunks: [UInt8] = []

    /// - Parameters:
    ///   - loops: How often it is played; 0 for endlessly.
    ///   - background: B, G, R, A, the first in the lowest byte.
    ///   - profile: An ICC profile.
    package init(
        width: Int, height: Int, loops: Int = 0, background: UInt32 = 0, hasAlpha: Bool = true, profile: [UInt8]? = nil
    ) {
        let flags: UInt8 = 2 | (hasAlpha ? 0x10 : 0) | (profile == nil ? 0 : 0x20)
        append("VP8X", [flags, 0, 0, 0] + Self.number(width - 1, 3) + Self.number(height - 1, 3))
        if let profile { append("ICCP", profile) }
        append("ANIM", Self.number(Int(background), 4) + Self.number(loops, 2))
    }

    /// Appends a frame; `change` modifies a plain one.
    package mutating func add(_ frame: Frame, _ change: (inout Frame) -> Void = { _ in }) {
        var frame = frame
        change(&frame)
        addChunks(Self.pictureChunks(frame), for: frame)
    }

    /// Appends a frame whose pixels are these chunks.
    package mutating func addChunks(_ picture: [UInt8], for frame: Frame) {
        let flags: UInt8 = (frame.blends ? 0 : 2) | (frame.disposesToBackground ? 1 : 0)
        let head =
            [frame.x / 2, frame.y / 2, frame.width - 1, frame.height - 1, frame.delay].flatMap { Self.number($0, 3) } + [flags]
        append("ANMF", head + picture)
    }

    /// Appends a chunk.
    package mutating func append(_ type: String, _ data: [UInt8]) {
        chunks += Self.chunk(type, data)
    }

    /// A chunk.
    ///
    /// - Parameter length: What it claims; nil for its length.
    package static func chunk(_ type: String, _ data: [UInt8], length: Int? = nil) -> [UInt8] {
        Array(type.utf8) + number(length ?? data.count, 4) + data + [UInt8](repeating: 0, count: data.count % 2)
    }

    /// The chunk `VP8L` of a picture of one colour, whose pixels need no bits.
    package static func plain(width: Int, height: Int, word: UInt32) -> [UInt8] {
        var writer = BitWriter()
        func write(_ fields: [(value: Int, bits: Int)]) {
            for field in fields { writer.write(field.value, field.bits) }
        }
        // The signature, the sides, alpha, the version, and neither transforms, nor a cache, nor groups of codes.
        write([(0x2f, 8), (width - 1, 14), (height - 1, 14), (1, 1), (0, 3), (0, 1), (0, 1), (0, 1)])
        // Codes of one symbol of eight bits: green, red, blue and alpha.
        for shift: UInt32 in [8, 0, 16, 24] { write([(1, 1), (0, 1), (1, 1), (Int(word >> shift & 255), 8)]) }
        // The code of distances, with a symbol of one bit.
        write([(1, 1), (0, 1), (0, 1), (0, 1)])
        return chunk("VP8L", writer.finish())
    }

    package func finish() -> [UInt8] { Self.file(chunks) }

    /// A file of one picture.
    package static func still(_ frame: Frame) -> [UInt8] { file(pictureChunks(frame)) }

    /// A file of these chunks.
    package static func file(_ chunks: [UInt8]) -> [UInt8] {
        Array("RIFF".utf8) + number(chunks.count + 4, 4) + Array("WEBP".utf8) + chunks
    }

    /// The chunks `VP8L`, or `VP8 ` and `ALPH`, of a picture.
    private static func pictureChunks(_ frame: Frame) -> [UInt8] {
        var output: UnsafeMutablePointer<UInt8>?
        let count = frame.words.withUnsafeBytes { words in
            let pixels = words.baseAddress?.assumingMemoryBound(to: UInt8.self)
            let (width, height) = (Int32(frame.width), Int32(frame.height))
            return frame.quality.map { WebPEncodeRGBA(pixels, width, height, width * 4, $0, &output) }
                ?? WebPEncodeLosslessRGBA(pixels, width, height, width * 4, &output)
        }
        defer { WebPFree(output) }
        var file = Array(UnsafeBufferPointer(start: output, count: count))[12...]
        // With alpha, an extended header precedes the chunks.
        if file.starts(with: "VP8X".utf8) { file = file.dropFirst(18) }
        return Array(file)
    }

    private static func number(_ number: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
}

/// Writes valid and invalid GIFs, block by block (GIF89a).
package struct GIFBuilder: Sendable {
    /// A palette entry.
    package typealias Color = (red: UInt8, green: UInt8, blue: UInt8)

    /// Black, white, red, green, blue, yellow, grey and a skin tone.
    package static let palette: [Color] = [
        (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0), (128, 128, 128), (200, 150, 120),
    ]

    /// The file so far, without its trailer.
    package private(set) var bytes: [UInt8]
    package let width: Int
    package let height: Int

    /// Begins a file with its screen descriptor and, unless it is nil, its global palette.
    package init(width: Int, height: Int, palette: [Color]? = Self.palette, version: String = "89a", background: UInt8 = 0) {
        self.width = width
        self.height = height
        bytes = Array("GIF\(version)".utf8) + Self.word(width) + Self.word(height)
        bytes += [palette.map { 0x80 | Self.sizeBits($0.count) } ?? 0, background, 0]
        if let palette { bytes += Self.colorTable(palette) }
    }

    /// The finished file.
    package func finish() -> [UInt8] { bytes + [0x3b] }

    /// One image with its graphic control extension.
    package struct Frame: Sendable {
        package var x = 0
        package var y = 0
        package var width: Int
        package var height: Int
        /// Palette indices, row by row from the top. The builder interlaces them.
        package var pixels: [UInt8]
        /// In hundredths of a second; nil leaves the graphic control extension out.
        package var delay: Int? = 10
        package var disposal = 0
        package var transparent: UInt8?
        package var isInterlaced = false
        package var minimumCodeSize = 3
        package var usesEndCode = true
        package var isTerminated = true

        package init(width: Int, height: Int, pixels: [UInt8]) {
            self.width = width
            self.height = height
            self.pixels = pixels
        }

        /// An image of one colour.
        package init(width: Int, height: Int, color: UInt8) {
            self.init(width: width, height: height, pixels: Array(repeating: color, count: width * height))
        }
    }

    /// Appends an image; `change` modifies a plain one.
    package mutating func add(_ frame: Frame, localPalette: [Color]? = nil, _ change: (inout Frame) -> Void = { _ in }) {
        var frame = frame
        change(&frame)
        if let delay = frame.delay {
            let flags = UInt8(frame.disposal << 2) | (frame.transparent == nil ? 0 : 1)
            bytes += [0x21, 0xf9, 4, flags] + Self.word(delay) + [frame.transparent ?? 0, 0]
        }
        bytes += [0x2c] + Self.word(frame.x) + Self.word(frame.y) + Self.word(frame.width) + Self.word(frame.height)
        bytes.append((localPalette.map { 0x80 | Self.sizeBits($0.count) } ?? 0) | (frame.isInterlaced ? 0x40 : 0))
        if let localPalette { bytes += Self.colorTable(localPalette) }
        let rows = frame.isInterlaced ? Self.interlaced(frame) : frame.pixels
        let codes = LZWEncoder.encode(rows, minimumCodeSize: frame.minimumCodeSize, usesEndCode: frame.usesEndCode)
        bytes.append(UInt8(frame.minimumCodeSize))
        bytes += Self.blocks(codes, isTerminated: frame.isTerminated)
    }

    /// Appends an image without a graphic control extension, whose codes and their size are given.
    package mutating func addCoded(
        x: Int = 0, y: Int = 0, width: Int, height: Int, minimumCodeSize: UInt8 = 2, _ codes: [UInt8]
    ) {
        bytes += [0x2c] + Self.word(x) + Self.word(y) + Self.word(width) + Self.word(height) + [0, minimumCodeSize]
        bytes += Self.blocks(codes, isTerminated: true)
    }

    /// Appends a graphic control extension with only a delay, in hundredths of a second.
    package mutating func addDelay(_ delay: Int) {
        bytes += [0x21, 0xf9, 4, 0] + Self.word(delay) + [0, 0]
    }

    /// Appends a whole-canvas image of one colour.
    package mutating func add(color: UInt8, delay: Int? = 10) {
        add(Frame(width: width, height: height, color: color)) { $0.delay = delay }
    }

    /// Appends a looping extension.
    package mutating func addLoop(_ count: Int, application: String = "NETSCAPE2.0") {
        bytes += [0x21, 0xff, 11] + Array(application.utf8) + [3, 1] + Self.word(count) + [0]
    }

    /// Appends an extension of any kind with its data in sub-blocks.
    package mutating func addExtension(_ label: UInt8, _ data: [UInt8]) {
        bytes += [0x21, label] + Self.blocks(data, isTerminated: true)
    }

    /// Appends bytes as they are.
    package mutating func addRaw(_ raw: [UInt8]) {
        bytes += raw
    }

    // MARK: Samples

    /// A square that moves over a canvas with each frame: a small part of every frame changes.
    package static func animation(frames: Int = 5, width: Int = 48, height: Int = 32, delay: Int = 10) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        builder.addLoop(0)
        for index in 0..<frames {
            var pixels = [UInt8](repeating: 1, count: width * height)
            for y in 0..<min(8, height) {
                for x in 0..<min(8, width) { pixels[y * width + (x + index * 4) % width] = UInt8(2 + index % 4) }
            }
            builder.add(Frame(width: width, height: height, pixels: pixels)) { $0.delay = delay }
        }
        return builder.finish()
    }

    /// Frames of noise, which no video encoder compresses well.
    package static func noise(frames: Int, width: Int, height: Int) -> [UInt8] {
        var builder = GIFBuilder(width: width, height: height)
        var state: UInt64 = 0x9e37_79b9_7f4a_7c15
        for _ in 0..<frames {
            let pixels = (0..<width * height).map { _ in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return UInt8(truncatingIfNeeded: state >> 61)
            }
            builder.add(Frame(width: width, height: height, pixels: pixels))
        }
        return builder.finish()
    }

    // MARK: Parts

    private static func word(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8 & 255)] }

    /// The size field of a colour table: 2^(n+1) entries.
    private static func sizeBits(_ count: Int) -> UInt8 {
        UInt8((0..<8).first { 2 << $0 >= count } ?? 7)
    }

    private static func colorTable(_ colors: [Color]) -> [UInt8] {
        let padded = colors + Array(repeating: (0, 0, 0), count: (2 << Int(sizeBits(colors.count))) - colors.count)
        return padded.flatMap { [$0.red, $0.green, $0.blue] }
    }

    private static func blocks(_ data: [UInt8], isTerminated: Bool) -> [UInt8] {
        var result: [UInt8] = []
        for start in stride(from: 0, to: data.count, by: 255) {
            let part = data[start..<min(start + 255, data.count)]
            result += [UInt8(part.count)] + part
        }
        return isTerminated ? result + [0] : result
    }

    private static func interlaced(_ frame: Frame) -> [UInt8] {
        let order = [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { start, step in
            Array(stride(from: start, to: frame.height, by: step))
        }
        return order.flatMap { frame.pixels[($0 * frame.width)..<(($0 + 1) * frame.width)] }
    }
}

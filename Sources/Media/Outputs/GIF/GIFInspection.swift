/// Inspects a GIF. The blocks that ``GIFWriter`` writes, and no others, must fill the file. Frames must lie on the screen, with
/// the claimed number and duration. The number of repetitions must be the source's.
enum GIFInspection {
    static func inspect(_ bytes: OutputBytes, _ claim: OutputClaim) throws(OutputFlaw) {
        guard bytes.count >= 13 else { throw .wrongSignature }
        var head = try bytes.read(0..<13)
        guard head.skip("GIF89a") else { throw .wrongSignature }
        try claim.check(PictureSize(width: try head.littleEndian(2), height: try head.littleEndian(2)))
        let fields = try head.littleEndian(1)
        guard fields & 0xf8 == 0xf0, try head.littleEndian(2) == 0 else { throw .malformed }
        var file = Blocks(bytes, position: 13 + 3 << (fields & 7 + 1))
        try inspectRepetitions(&file, claim)
        var (frames, duration) = (0, 0)
        while true {
            var delay = 0
            var kind = try file.take(1)
            if kind.rest.first == 0x21 {
                delay = try inspectControl(&file)
                kind = try file.take(1)
            }
            let block = try kind.number(1)
            if block == 0x3b { break }
            guard block == 0x2c else { throw .malformed }
            try inspectImage(&file, claim)
            (frames, duration) = (frames + 1, duration + delay)
            guard frames <= claim.samples else { throw .wrongSampleCount }
        }
        guard file.isAtEnd else { throw .malformed }
        guard frames == claim.samples else { throw .wrongSampleCount }
        guard duration == claim.duration, claim.timescale == FrameClock.timescale else { throw .wrongDuration }
    }

    /// Inspects the loop count extension, which an animation has if it plays more than once.
    private static func inspectRepetitions(_ file: inout Blocks, _ claim: OutputClaim) throws(OutputFlaw) {
        guard claim.samples > 1 else { return }
        let plays: Int
        if try file.peek(2).starts(with: [0x21, 0xff]) {
            var content = try file.take(19)
            try content.skip(2)
            guard try content.number(1) == 11, content.skip("NETSCAPE2.0"), try content.number(2) == 0x0301 else {
                throw .malformed
            }
            let count = try content.littleEndian(2)
            guard try content.number(1) == 0 else { throw .malformed }
            plays = count == 0 ? 0 : count + 1
        } else {
            plays = 1
        }
        // Several rounds in the file reduce the number of plays, down to one.
        guard claim.loopCount == 0 ? plays == 0 : (1...(claim.loopCount ?? 0) + 1).contains(plays) else { throw .wrongDuration }
    }

    /// Inspects the graphic control extension after its introducer. Returns the delay.
    private static func inspectControl(_ file: inout Blocks) throws(OutputFlaw) -> Int {
        var content = try file.take(7)
        // Disposal 1 to 3, and optionally a transparent colour.
        guard try content.number(2) == 0xf904, (4...13).contains(try content.number(1)) else { throw .malformed }
        let delay = try content.littleEndian(2)
        try content.skip(1)
        guard try content.number(1) == 0 else { throw .malformed }
        return delay
    }

    /// Inspects an image after its separator, up to the end of its data.
    private static func inspectImage(_ file: inout Blocks, _ claim: OutputClaim) throws(OutputFlaw) {
        var content = try file.take(9)
        let (x, y) = (try content.littleEndian(2), try content.littleEndian(2))
        let (width, height) = (try content.littleEndian(2), try content.littleEndian(2))
        guard width > 0, height > 0, x + width <= claim.width, y + height <= claim.height else { throw .wrongSize }
        let fields = try content.number(1)
        guard fields == 0 || fields & 0xf8 == 0x80 else { throw .malformed }
        if fields != 0 { try file.skip(3 << (fields & 7 + 1)) }
        var size = try file.take(1)
        guard (2...8).contains(try size.number(1)) else { throw .malformed }
        var length = 0
        repeat {
            var block = try file.take(1)
            length = try block.number(1)
            try file.skip(length)
        } while length > 0
    }
}

/// Reads a file from front to back, with one part in memory.
private struct Blocks {
    private static let partLength = 64 << 10

    private let bytes: OutputBytes
    private var position: Int
    private var part: ArraySlice<UInt8> = []

    init(_ bytes: OutputBytes, position: Int) {
        self.bytes = bytes
        self.position = position
    }

    var isAtEnd: Bool { position == bytes.count }

    /// Returns the next few bytes without skipping them.
    mutating func peek(_ count: Int) throws(OutputFlaw) -> ArraySlice<UInt8> {
        guard position <= bytes.count - count else { throw .malformed }
        if part.count < count { part = try bytes.read(position..<min(bytes.count, position + Self.partLength)).rest }
        return part.prefix(count)
    }

    mutating func take(_ count: Int) throws(OutputFlaw) -> ByteReader {
        let taken = try peek(count)
        try skip(count)
        return ByteReader(taken)
    }

    mutating func skip(_ count: Int) throws(OutputFlaw) {
        guard position <= bytes.count - count else { throw .malformed }
        position += count
        part = part.dropFirst(count)
    }
}

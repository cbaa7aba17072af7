internal import Media

/// A conversion whose output is discarded. It runs in the zygote before its confinement, and in each spare worker.
///
/// Workers then share what libraries initialize once (tables, CPU detection, lazily bound symbols, metadata), and no library
/// must open a file after the confinement. Pages that a conversion writes to are copied for each worker before its job.
enum WarmUp {
    /// An animation with enough different frames for every picture type and for the encoder's lookahead.
    private static let long = animation(frames: 20)
    /// An animation with enough frames to write to every page that a conversion writes to.
    private static let short = animation(frames: 4)

    /// Initializes the state that all workers share, including that of ``repeatShortly(output:)``.
    ///
    /// - Parameter output: A file that may be overwritten.
    static func run(output: Int32) {
        convert(long, output)
        convert(short, output)
    }

    /// Gives this worker its own copies of the pages that conversions write to.
    static func repeatShortly(output: Int32) {
        convert(short, output)
    }

    private static func convert(_ gif: [UInt8], _ output: Int32) {
        // A failure here recurs in every job, which reports it.
        _ = try? gif.withUnsafeBytes { try Transcoder().convert($0, to: output) }
    }

    private static func animation(frames: Int) -> [UInt8] {
        let side = 32
        var bytes = Array("GIF89a".utf8) + [UInt8(side), 0, UInt8(side), 0, 0x80, 0, 0] + [0, 0, 0, 255, 255, 255]
        for frame in 0..<frames {
            bytes += [0x21, 0xf9, 4, 4, 5, 0, 0, 0]
            bytes += [0x2c, 0, 0, 0, 0, UInt8(side), 0, UInt8(side), 0, 0, 2]
            let data = compressed((0..<side * side).map { ($0 / side + $0 % side + frame * 3) / 8 % 2 })
            for start in stride(from: 0, to: data.count, by: 255) {
                let block = data[start..<min(start + 255, data.count)]
                bytes += [UInt8(block.count)] + block
            }
            bytes.append(0)
        }
        return bytes + [0x3b]
    }

    /// Encodes pixels as LZW without compression: a clear code before each pixel keeps the codes at three bits.
    private static func compressed(_ pixels: [Int]) -> [UInt8] {
        var bytes: [UInt8] = []
        var bits = 0
        var count = 0
        for code in pixels.flatMap({ [4, $0] }) + [5] {
            bits |= code << count
            count += 3
            while count >= 8 {
                bytes.append(UInt8(truncatingIfNeeded: bits))
                bits >>= 8
                count -= 8
            }
        }
        return bytes + [UInt8(truncatingIfNeeded: bits)]
    }
}

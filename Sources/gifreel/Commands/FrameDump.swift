internal import Foundation
internal import Media
internal import SystemIO

/// `gifreel frames`: writes a GIF's composed frames as raw RGBA files, and their facts as `meta.json`.
package enum FrameDump {
    /// Writes the frames of one GIF, or prints on standard error why it cannot. Blocks.
    ///
    /// The files are `frame_000.rgba`, … (straight alpha, rows from top to bottom, no padding) and `meta.json` with the size
    /// of the canvas, the raw delays in hundredths of a second and the raw loop count, or with the error.
    ///
    /// - Parameters:
    ///   - input: Path of the GIF; `-` is standard input.
    ///   - directory: Created if it does not exist.
    /// - Returns: The exit code.
    package static func run(_ input: String, to directory: String) -> Int32 {
        do {
            let gif = try Files.read(input)
            try Files.createDirectory(directory)
            let facts: [String: Any]
            var failure: String?
            do {
                facts = try dump(gif, to: directory)
            } catch let error as TranscodeError {
                failure = error.description
                facts = ["error": error.description]
            }
            let json = try JSONSerialization.data(withJSONObject: facts, options: [.sortedKeys])
            try Files.write(String(decoding: json, as: UTF8.self), to: directory + "/meta.json")
            guard let failure else { return 0 }
            StandardError.write("\(input): \(failure)\n")
        } catch {
            StandardError.write("gifreel: \(error)\n")
        }
        return 1
    }

    private static func dump(_ gif: [UInt8], to directory: String) throws -> [String: Any] {
        // A dump is for inspection, so only what does not fit into memory is refused.
        let limits = MediaLimits(side: Int(UInt16.max), canvasPixels: 100_000_000, pixelsPerByte: .max)
        return try gif.withUnsafeBytes { bytes in
            let summary = try AnimationSummary(scanning: bytes, by: GIFReader.self, limits: limits)
            var reader = try GIFReader(bytes, limits: limits)
            var canvas = try Canvas(width: summary.width, height: summary.height, format: .rgba)
            var delays: [Int] = []
            while try reader.next(), let pixels = try reader.readPixels() {
                _ = try canvas.draw(reader, pixels)
                let number = String(delays.count)
                let name = "frame_" + String(repeating: "0", count: max(0, 3 - number.count)) + number + ".rgba"
                let pixels = canvas.withBytes { Array($0) }
                try pixels.withUnsafeBytes { try Files.write($0, to: directory + "/" + name) }
                delays.append(reader.frame.delay)
            }
            guard !delays.isEmpty else { throw TranscodeError.incomplete }
            let loop: Any = reader.loopCount.map { $0 == 0 ? "infinite" as Any : $0 as Any } ?? NSNull()
            return ["width": summary.width, "height": summary.height, "delays_cs": delays, "loop": loop]
        }
    }
}

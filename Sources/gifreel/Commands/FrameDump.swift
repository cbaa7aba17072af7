import Foundation
internal import Media

/// `gifreel frames`: writes a GIF's composed frames as raw RGBA files, and `meta.json` beside them.
package enum FrameDump {
    /// Writes `frame_000.rgba`, … (straight alpha, rows from top to bottom, no padding) and `meta.json` with the
    /// canvas' size, the raw delays in hundredths of a second and the raw loop count.
    ///
    /// - Parameters:
    ///   - gif: The file's bytes.
    ///   - directory: Made where it is missing.
    /// - Returns: A sentence that says why the GIF has no frames, or nil when it has; `meta.json` has the same.
    /// - Throws: Foundation's errors for files that cannot be written.
    package static func write(_ gif: [UInt8], to directory: String) throws -> String? {
        let folder = URL(fileURLWithPath: directory, isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let facts: [String: Any]
        var failure: String?
        do {
            facts = try dump(gif, to: folder)
        } catch let error as TranscodeError {
            failure = error.description
            facts = ["error": error.description]
        }
        let json = try JSONSerialization.data(withJSONObject: facts, options: [.sortedKeys])
        try json.write(to: folder.appendingPathComponent("meta.json"))
        return failure
    }

    private static func dump(_ gif: [UInt8], to folder: URL) throws -> [String: Any] {
        // A dump is for looking at: only what does not fit into memory is refused.
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
                try canvas.withBytes { Data($0) }.write(to: folder.appendingPathComponent(name))
                delays.append(reader.frame.delay)
            }
            guard !delays.isEmpty else { throw TranscodeError.incomplete }
            let loop: Any = reader.loopCount.map { $0 == 0 ? "infinite" as Any : $0 as Any } ?? NSNull()
            return ["width": summary.width, "height": summary.height, "delays_cs": delays, "loop": loop]
        }
    }
}

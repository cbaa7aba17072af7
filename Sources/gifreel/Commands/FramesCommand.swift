internal import ArgumentParser
internal import Foundation
internal import Media
internal import SystemIO

/// `gifreel frames`: writes a GIF's composed frames as raw RGBA files, and its facts as `meta.json`.
///
/// The files are `frame_000.rgba`, … (straight alpha, rows from top to bottom, no padding) and `meta.json` with the size of the
/// canvas, the raw delays in hundredths of a second and the raw loop count, or with the error.
struct FramesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Writes the composed frames of a GIF as raw RGBA, with meta.json.")

    @Argument(help: "The GIF; - is standard input.")
    var file: String

    @Argument(help: "The directory to write to, which is created if it does not exist.")
    var directory: String

    /// Writes the frames, or prints on standard error why it cannot. Exits with 1 then.
    func run() throws {
        do {
            let gif = try Files.read(file)
            try Files.createDirectory(directory)
            do {
                try write(try Self.dump(gif, to: directory))
            } catch let error as TranscodeError {
                try write(["error": error.description])
                StandardError.write("\(file == "-" ? "standard input" : file): \(error)\n")
                throw ExitCode.failure
            }
        } catch let error as FileError {
            StandardError.write("gifreel: \(error)\n")
            throw ExitCode.failure
        }
    }

    private func write(_ facts: [String: Any]) throws {
        let json = try JSONSerialization.data(withJSONObject: facts, options: [.sortedKeys])
        try Files.write(String(decoding: json, as: UTF8.self), to: directory + "/meta.json")
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

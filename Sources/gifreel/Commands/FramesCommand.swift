internal import ArgumentParser
internal import Foundation
internal import Media
internal import SystemIO

/// `gifreel frames`: writes an animation's composed frames as raw RGBA files, and its facts as `meta.json`.
///
/// The files are `frame_000.rgba`, … (straight alpha, rows from top to bottom, no padding) and `meta.json`: the format, the canvas
/// size, the coded delays in milliseconds (for a GIF in hundredths of a second, too) and the coded loop count, or the error.
struct FramesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "frames", abstract: "Writes the composed frames of an animation as raw RGBA, with meta.json.",
        discussion: "Decodes in its own process, without the confinement and the limits of a worker: for files that you trust.")

    @Argument(help: "The animation; - is standard input.", completion: .file())
    var file: String

    @Argument(help: "The directory to write to, which is created if it does not exist.", completion: .directory)
    var directory: String

    /// Writes the frames, or prints on standard error why it cannot. Exits with 1 then.
    func run() throws {
        Transcoder.prepareLibraries()
        let source = try Files.read(file)
        try Files.createDirectory(directory)
        do {
            try write(try Self.dump(source, to: directory))
        } catch let error as TranscodeError {
            try write(["error": error.description])
            StandardError.writeLine("\(file == "-" ? "standard input" : file): \(error)")
            throw ExitCode.failure
        }
    }

    private func write(_ facts: [String: Any]) throws {
        let json = try JSONSerialization.data(withJSONObject: facts, options: [.sortedKeys])
        try Files.write(String(decoding: json, as: UTF8.self), to: directory + "/meta.json")
    }

    /// A dump is for inspection: a still PNG or WebP is one frame, and only sources that do not fit into memory are refused.
    private static func dump(_ source: [UInt8], to directory: String) throws -> [String: Any] {
        try source.withUnsafeBytes { bytes in
            switch SourceFormat(of: bytes) {
            case .gif: try dumpFrames(bytes, by: GIFReader.self, to: directory)
            case .apng: try dumpFrames(bytes, by: APNGReader.self, to: directory)
            case .webp: try dumpFrames(bytes, by: WebPReader.self, to: directory)
            // A still AVIF has no track, so the reader would find it incomplete.
            case .avif? where !SourceFormat.avif.isAnimation(bytes): throw TranscodeError.still(.avif)
            case .mp4?, .mov?, .webm?, .avif?: try dumpFrames(bytes, by: ClipReader.self, to: directory)
            case nil: throw TranscodeError.notAnAnimation
            }
        }
    }

    private static func dumpFrames<Decoder: AnimationDecoder & ~Copyable>(
        _ bytes: UnsafeRawBufferPointer, by _: Decoder.Type, to directory: String
    ) throws -> [String: Any] {
        var limits = MediaLimits.standard
        (limits.side, limits.canvasPixels, limits.pixelsPerByte) = (Int(UInt16.max), 100_000_000, .max)
        let summary = try AnimationSummary(scanning: bytes, by: Decoder.self, limits: limits)
        var reader = try Decoder(bytes, limits: limits)
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
        guard !delays.isEmpty else { throw TranscodeError.incomplete(Decoder.format) }
        var facts: [String: Any] = [
            "format": Decoder.format.name, "width": summary.width, "height": summary.height,
            "delays_ms": delays.map { Double($0) * 1000 / Double(summary.timescale) },
            "loop": codedLoopCount(reader.loopCount, Decoder.format),
        ]
        if Decoder.format == .gif { facts["delays_cs"] = delays }
        return facts
    }

    /// The loop count as coded: repetitions in a GIF, plays in the other formats.
    private static func codedLoopCount(_ repetitions: Int?, _ format: SourceFormat) -> Any {
        guard let repetitions else { return NSNull() }
        if format == .gif { return repetitions == 0 ? "infinite" as Any : repetitions }
        return repetitions == 0 ? 0 : repetitions + 1
    }
}

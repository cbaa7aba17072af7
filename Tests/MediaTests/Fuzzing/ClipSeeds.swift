internal import SystemIO

#if canImport(Media)
    @testable import Media
#endif
#if canImport(TestSupport)
    import TestSupport
#endif

/// What the fuzzer begins with: a small animation in each format that Gifreel both makes and reads.
enum ClipSeeds {
    static var all: [[UInt8]] {
        Transcoder.prepareLibraries()
        var options = TranscodeOptions()
        options.codec = .av1
        let outputs = [
            Transcoder(output: .mp4), Transcoder(output: .mp4, options: options), Transcoder(output: .webm),
            Transcoder(output: .avif),
        ]
        return outputs.flatMap { output in gifs.compactMap { try? made(output, of: $0) } }
    }

    /// One with transparent pixels and one without.
    private static var gifs: [[UInt8]] {
        var transparent = GIFBuilder(width: 18, height: 16)
        for color: UInt8 in 0..<3 {
            transparent.add(GIFBuilder.Frame(width: 9, height: 8, color: color)) {
                ($0.x, $0.disposal, $0.transparent) = (Int(color), 2, 0)
            }
        }
        return [GIFBuilder.animation(frames: 3, width: 32, height: 18), transparent.finish()]
    }

    private static func made(_ transcoder: Transcoder, of gif: [UInt8]) throws -> [UInt8] {
        let file = try MemoryFile(name: "seed")
        let result = try gif.withUnsafeBytes { try transcoder.convert($0, to: file.reader.number) }
        return try DescriptorIO.read(result.bytes, from: file.reader.number, at: 0)
    }
}

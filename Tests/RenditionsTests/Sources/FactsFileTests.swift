import Media
import Store
import SystemIO
import TestSupport
import Testing

@testable import Renditions

@Suite("Facts that are written can be read") struct FactsFileTests {
    /// What a worker wrote about a GIF of three frames.
    private static func worked() throws -> (file: SharedDescriptor, result: TranscodeResult) {
        let file = try MemoryFile(name: "test").reader
        let result = try GIFBuilder.animation(frames: 3).withUnsafeBytes {
            try Transcoder(output: .facts).convert($0, to: file.number)
        }
        return (file, result)
    }

    private static func write(_ result: TranscodeResult, _ file: SharedDescriptor) throws {
        let digest = SourceDigest(hex: String(repeating: "a", count: 64))
        _ = try FactsFile.write(result, of: #require(digest), bytes: 100, with: nil, to: file)
    }

    /// Those of a clip of which the first is rounded to nothing and the last is shown for a day.
    @Test func shortAndLongDelaysAreRead() throws {
        var (file, result) = try Self.worked()
        let delays = [0, 4167, 86_400_000_000]
        let bytes = delays.flatMap { delay in (0..<8).map { UInt8(truncatingIfNeeded: delay >> (8 * $0)) } }
        try DescriptorIO.write(bytes, to: file.number, at: 0)
        (result.timescale, result.duration) = (1_000_000, delays.reduce(0, +))
        try Self.write(result, file)
        let facts = try FactsFile.document(in: file).source.facts
        #expect(facts.delays == [0, 0.004167, 86_400] && facts.duration == 86_400.004167)
    }

    @Test func whatReadersWouldRefuseIsNotWritten() throws {
        var (file, result) = try Self.worked()
        result.loopCount = 65_536
        #expect(throws: RenditionError.self) { try Self.write(result, file) }
        result.loopCount = 65_535
        try Self.write(result, file)
        #expect(try FactsFile.document(in: file).source.facts.loopCount == 65_535)
    }
}

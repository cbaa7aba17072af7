import Foundation
import Glibc
import TestSupport
import Testing

@testable import Media

/// What the benchmarks measure is what a conversion does.
@Suite("The costs of the stages of a conversion are measured")
struct StageCostsTests {
    /// The bytes that `body` writes into a file.
    private func written(_ body: (Int32) throws -> Void) throws -> [UInt8] {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString).mp4")
        let descriptor = open(file.path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        defer {
            close(descriptor)
            unlink(file.path)
        }
        try body(descriptor)
        return [UInt8](try Data(contentsOf: file))
    }

    @Test func theMeasuredConversionIsTheRealOne() throws {
        Transcoder.prepareLibraries()
        var builder = GIFBuilder(width: 33, height: 21)
        for index in 0..<20 {
            let frame = GIFBuilder.Frame(width: 12, height: 9, color: UInt8(index % 6 / 2))
            builder.add(frame) { ($0.x, $0.y, $0.disposal, $0.delay) = (index, index / 2, index % 4, index) }
        }
        let gif = builder.finish()
        let real = try written { file in _ = try gif.withUnsafeBytes { try Transcoder().convert($0, to: file) } }
        var costs = StageCosts()
        let measured = try written { file in costs = try gif.withUnsafeBytes { try Transcoder().stageCosts(of: $0, to: file) } }
        // Not byte for byte: in a process that has encoded before, x264's decisions may differ in a few of a GIF this small.
        #expect(try MP4Boxes(measured).durations == MP4Boxes(real).durations)
        #expect(costs.bytes == measured.count && costs.codedPixels == 20 * 12 * 9)
        #expect(costs.videoPixels % (34 * 22) == 0 && costs.videoPixels <= 20 * 34 * 22)
        for stage in [costs.scan, costs.decode, costs.compose, costs.convert, costs.encode, costs.mux] { #expect(stage > 0) }
    }
}

import TestSupport
import Testing

@testable import Media

@Suite("A frame can be quantized more coarsely than others") struct QuantizerOffsetTests {
    private static let side = 64

    /// The bytes of frames of noise.
    private func bytes(offsets: [Double]) throws -> Int {
        let settings = H264Settings(TranscodeOptions(), PictureContent(isDrawing: false))
        let encoder = try VideoEncoder(width: Self.side, height: Self.side, settings: settings)
        var random = SeededNumbers(seed: 3)
        var sum = 0
        for offset in offsets {
            let planes = try encoder.planes()
            for y in 0..<Self.side {
                for x in 0..<Self.side {
                    planes.luma[y * planes.lumaStride + x] = UInt8.random(in: 90...160, using: &random)
                }
            }
            for y in 0..<Self.side / 2 {
                (planes.cb + y * planes.cbStride).update(repeating: 128, count: Self.side / 2)
                (planes.cr + y * planes.crStride).update(repeating: 128, count: Self.side / 2)
            }
            try encoder.encode(coarserBy: offset) { packet throws(TranscodeError) in
                sum += packet.pointee.bytes.count
            }
        }
        try encoder.finish { packet throws(TranscodeError) in sum += packet.pointee.bytes.count }
        return sum
    }

    @Test func coarserFramesHaveFewerBytes() throws {
        let plain = try bytes(offsets: [0, 0, 0, 0])
        let coarse = try bytes(offsets: [4, 4, 4, 4])
        #expect(coarse < plain * 4 / 5, "\(plain) to \(coarse)")
    }

    @Test func anOffsetEndsWithItsFrame() throws {
        let all = try bytes(offsets: [8, 8, 8, 8])
        let first = try bytes(offsets: [8, 0, 0, 0])
        #expect(first > all * 5 / 4, "\(first) and \(all)")
    }
}

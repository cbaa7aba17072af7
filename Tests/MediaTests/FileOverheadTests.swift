import Foundation
import TestSupport
import Testing

@testable import Media

@Suite("Files hold nothing that no reader needs") struct FileOverheadTests {
    private static let codecs = [VideoCodec.h264, .av1].filter { LinkedLibraries.has($0) }

    /// Whether the bytes in front of the data have a box of this kind.
    private func hasBox(_ kind: String, _ bytes: [UInt8]) -> Bool {
        let file = Data(bytes)
        let head = file.range(of: Data("mdat".utf8)).map { file[..<$0.lowerBound] } ?? file
        return head.range(of: Data(kind.utf8)) != nil
    }

    @Test(arguments: codecs, [1, 3]) func anMP4IsTypeIndexAndData(_ codec: VideoCodec, _ loops: Int) throws {
        let mp4 = try Converted(WebMTests.sprite([10, 20, 5])) {
            $0.codec = codec
            $0.time.loops = loops
        }
        #expect(mp4.boxes.top == ["ftyp", "moov", "mdat"] && mp4.boxes.samples.count == 3 * loops)
        for kind in ["udta", "btrt", "pasp", "free"] { #expect(!hasBox(kind, mp4.bytes), "\(kind)") }
        #expect(mp4.result.bytes == mp4.bytes.count)
    }

    @Test func soIsACopiedClip() throws {
        let clip = try Converted(WebMTests.sprite([10, 20, 5]))
        let copy = try Converted(clip.bytes)
        #expect(copy.bytes.count <= clip.bytes.count && copy.boxes.top == ["ftyp", "moov", "mdat"])
    }

    @Test(.enabled(if: LinkedLibraries.offered.contains(.avif))) func thePlanesOfASmallAVIFAreOneChunkEach() throws {
        let avif = try Converted(WebMTests.sprite([10, 20, 5]), as: .avif) { _ in }
        let boxes = try AVIFBoxes(avif.bytes)
        #expect(boxes.tracks.map(\.chunkCount) == [1, 1] && boxes.tracks.map(\.samples.count) == [3, 3])
        #expect(boxes.items == boxes.tracks.map { $0.samples[0] })
        #expect(!hasBox("Color", avif.bytes) && !hasBox("Alpha", avif.bytes))
    }
}

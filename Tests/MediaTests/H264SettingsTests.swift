import Testing

@testable import Media

@Suite("x264 gets the settings of the content") struct H264SettingsTests {
    /// The settings that x264 writes into the first picture of a video.
    private func settings(_ content: PictureContent) throws -> String {
        let settings = H264Settings(TranscodeOptions(), content)
        let encoder = try VideoEncoder(width: 64, height: 64, settings: settings)
        let planes = try encoder.planes()
        for y in 0..<64 { (planes.luma + y * planes.lumaStride).update(repeating: 90, count: 64) }
        for y in 0..<32 {
            (planes.cb + y * planes.cbStride).update(repeating: 128, count: 32)
            (planes.cr + y * planes.crStride).update(repeating: 128, count: 32)
        }
        var packets: [String] = []
        try encoder.encode { packet throws(TranscodeError) in
            packets.append(String(decoding: packet.pointee.bytes, as: UTF8.self))
        }
        try encoder.finish { packet throws(TranscodeError) in
            packets.append(String(decoding: packet.pointee.bytes, as: UTF8.self))
        }
        let first = try #require(packets.first)
        let text = try #require(first.firstRange(of: "options: "))
        return String(first[text.upperBound...].prefix { $0 != "\0" })
    }

    private func expect(_ parts: [String], in settings: String) {
        let words = settings.split(separator: " ")
        for part in parts { #expect(words.contains(Substring(part)), "\(settings)") }
    }

    @Test func aFilmIsEncodedWithThePresetsReferences() throws {
        expect(
            ["ref=3", "me=hex", "subme=6", "aq=1:1.00", "qcomp=0.50", "deblock=1:0:0"],
            in: try settings(PictureContent(isDrawing: false, changedShare: 1, frames: 1000)))
    }

    @Test func aDrawingIsSearchedFartherWhereLittleChanges() throws {
        let still = PictureContent(isDrawing: true, changedShare: 0.1, frames: 10_000)
        expect(["ref=6", "me=umh", "me_range=64", "subme=2", "deblock=1:-1:-1"], in: try settings(still))
        let lively = PictureContent(isDrawing: true, changedShare: 1, frames: 1000)
        expect(
            ["ref=3", "me=hex", "subme=6", "analyse=0x1:0x131", "deblock=1:-1:-1", "aq=1:1.00", "qcomp=0.60"],
            in: try settings(lively))
        let pixels = PictureContent(isDrawing: true, isPixelArt: true, changedShare: 1, frames: 1000)
        expect(["me=umh", "me_range=64", "deblock=0:0:0"], in: try settings(pixels))
        let scrolling = PictureContent(isDrawing: false, farShare: 0.5, changedShare: 1, frames: 1000)
        expect(["ref=6", "me=umh", "me_range=112", "deblock=1:0:0"], in: try settings(scrolling))
    }

    @Test func aFilmWithoutItsDitherSpendsLessOnSmoothAreas() throws {
        let film = PictureContent(isDrawing: false, isUndithered: true, changedShare: 1, frames: 1000)
        expect(["ref=2", "me=hex", "aq=1:0.60"], in: try settings(film))
    }

    @Test func coloursOfDrawingsAndSmallPicturesAreQuantizedLess() throws {
        expect(["chroma_qp_offset=-6"], in: try settings(PictureContent(isDrawing: true)))
        expect(["chroma_qp_offset=-6"], in: try settings(PictureContent(isDrawing: false, isSmall: true)))
        expect(["chroma_qp_offset=0"], in: try settings(PictureContent(isDrawing: false)))
    }

    @Test func whatIsSmallAndShortIsSearchedThoroughly() throws {
        let emoji = PictureContent(isDrawing: true, changedShare: 1, frames: 10)
        expect(["ref=10", "me=umh", "subme=7", "trellis=1", "analyse=0x1:0x131", "crf=19.4"], in: try settings(emoji))
    }
}

import Foundation
import Media
import TestSupport
import Testing

@testable import Web

@Suite("The blur of a page is a PNG in its markup") struct PlaceholderImageTests {
    @Test(arguments: [(16, 9), (1, 1), (3, 16)]) func aDecoderReadsThePixelsBack(_ width: Int, _ height: Int) throws {
        let pixels = (0..<4 * width * height).map { (index: Int) -> UInt8 in
            index % 4 == 3 ? 255 : UInt8(index * 37 % 256)
        }
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString).png")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(PlaceholderImage.png(pixels, width: width, height: height)).write(to: file)
        let words = stride(from: 0, to: pixels.count, by: 4).map { (start: Int) -> UInt32 in
            let (red, green) = (UInt32(pixels[start]), UInt32(pixels[start + 1]))
            let (blue, alpha) = (UInt32(pixels[start + 2]), UInt32(pixels[start + 3]))
            return red | green << 8 | blue << 16 | alpha << 24
        }
        #expect(try FFmpeg.picture(file) == words)
    }

    @Test func itHasTheAspectRatioOfThePicture() throws {
        let hash = try #require(Data(base64Encoded: "XwgGHYKFYHhiY3l0h1h3hph4Hy9/").flatMap { ThumbHash(Array($0)) })
        for (width, height, expected) in [(640, 360, [16, 9]), (10, 4000, [1, 16]), (500, 500, [16, 16])] {
            let url = PlaceholderImage.url(hash, width: width, height: height)
            let png = try #require(Data(base64Encoded: String(url.dropFirst("data:image/png;base64,".count))))
            #expect([Int(png[19]), Int(png[23])] == expected && png.count < 1200)
        }
    }
}

import Testing

@testable import Media

@Suite("Scaling one plane") struct PlaneScalerTests {
    @Test(arguments: [(2, 2), (41, 1), (42, 3), (43, 43), (64, 1), (1, 97), (100, 100), (255, 7), (1000, 50)])
    func evenPlanesKeepTheirLevel(_ factor: (x: Int, y: Int)) throws {
        let target = (width: 8, height: 8)
        let source = (width: target.width * factor.x, height: target.height * factor.y)
        let scaler = try PlaneScaler(from: source, to: target)
        let plane = try SamplePlane(width: source.width, height: source.height)
        let scaled = try SamplePlane(width: target.width, height: target.height)
        for level in stride(from: UInt8(0), through: 255, by: 15) {
            for y in 0..<source.height { plane.row(y).update(repeating: level, count: source.width) }
            try scaler.scale(plane, into: scaled.samples, stride: scaled.stride)
            for y in 0..<target.height {
                for x in 0..<target.width { #expect(scaled.row(y)[x] == level) }
            }
        }
    }
}

@Suite("Scaling pictures") struct PictureScalerTests {
    private func scaled(_ pixels: [UInt32], _ width: Int, to size: (width: Int, height: Int)) throws -> [UInt32] {
        let height = pixels.count / width
        let canvas = try Canvas(width: width, height: height, format: .rgba)
        for (index, pixel) in pixels.enumerated() { canvas.pixels[index] = pixel }
        let area = Rectangle(x: 0, y: 0, width: width, height: height)
        let isOpaque = !canvas.hasTransparency(in: nil)
        let words = try HeapBuffer<UInt32>(count: size.width * size.height)
        try PictureScaler(area, to: size, isOpaque: isOpaque).scale(
            canvas.pixels, stride: canvas.width, into: words.base, pitch: size.width)
        return Array(UnsafeBufferPointer(start: words.base, count: size.width * size.height))
    }

    @Test func littleAlphaKeepsItsColour() throws {
        let color: UInt32 = 200 | 90 << 8 | 37 << 16
        for alpha: UInt32 in [1, 2, 5, 17, 128, 254] {
            for word in try scaled(Array(repeating: color | alpha << 24, count: 64 * 64), 64, to: (17, 23)) {
                #expect(word >> 24 == alpha && difference(word, color) <= 1)
            }
        }
        // Opaque stripes of one pixel, on nothing, and holes, whose alpha overshoots.
        let stripe = (0..<64 * 64).map { $0 % 64 == 31 ? color | 255 << 24 : 0 }
        let hole = (0..<64 * 64).map { $0 % 64 == 31 ? 0 : color | 255 << 24 }
        for pixels in [stripe, hole] {
            let words = try scaled(pixels, 64, to: (23, 64))
            #expect(words.contains { (1...254).contains($0 >> 24) })
            for word in words where word > 0 { #expect(difference(word, color) <= 1, "\(String(word, radix: 16))") }
        }
    }

    /// The largest difference of two words' colours.
    private func difference(_ one: UInt32, _ other: UInt32) -> Int {
        [0, 8, 16].map { abs(Int(one >> $0 & 255) - Int(other >> $0 & 255)) }.max() ?? 0
    }

    @Test func opaquePicturesStayOpaque() throws {
        let words = try scaled((0..<60 * 40).map { UInt32($0) &* 2_654_435_761 | 0xff00_0000 }, 60, to: (31, 19))
        #expect(words.allSatisfy { $0 >= PixelFormat.opaque })
    }

    @Test func aFilterDoesNotLeaveTheRangeOfVideo() throws {
        // Stripes, at whose edges a bicubic filter overshoots.
        let canvas = try Canvas(width: 64, height: 64, format: .yuv(background: RGB(red: 0, green: 0, blue: 0)))
        let colors = [RGB(red: 255, green: 255, blue: 255), RGB(red: 0, green: 0, blue: 0), RGB(red: 0, green: 0, blue: 255)]
        for index in 0..<64 * 64 { canvas.pixels[index] = canvas.format.pack(colors[index % 64 / 7 % 3]) }
        let geometry = PictureGeometry(width: 64, height: 64, options: SizeOptions(width: 41))
        let (width, height) = (geometry.evenWidth, geometry.evenHeight)
        let luma = try SamplePlane(width: width, height: height)
        let cb = try SamplePlane(width: width / 2, height: height / 2)
        let cr = try SamplePlane(width: width / 2, height: height / 2)
        let planes = FramePlanes(
            luma: luma.samples, cb: cb.samples, cr: cr.samples, lumaStride: luma.stride, cbStride: cb.stride,
            crStride: cr.stride)
        _ = try VideoScaler(geometry, background: .white).convert(canvas, .empty, into: planes)
        for y in 0..<height { for x in 0..<width { #expect((16...235).contains(luma.row(y)[x])) } }
        for y in 0..<height / 2 { for x in 0..<width / 2 { #expect((16...240).contains(cb.row(y)[x])) } }
    }
}

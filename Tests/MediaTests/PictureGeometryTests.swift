import Testing

@testable import Media

@Suite("Size options determine the part of the canvas and the size of the picture")
struct PictureGeometryTests {
    private func size(_ canvas: (Int, Int), _ width: Int?, _ height: Int?, _ fit: SizeOptions.Fit = .contain) -> [Int] {
        let geometry = PictureGeometry(
            width: canvas.0, height: canvas.1, options: SizeOptions(width: width, height: height, fit: fit))
        return [geometry.width, geometry.height]
    }

    private func part(_ canvas: (Int, Int), _ width: Int, _ height: Int) -> Rectangle {
        PictureGeometry(width: canvas.0, height: canvas.1, options: SizeOptions(width: width, height: height, fit: .cover))
            .source
    }

    @Test func nothingAskedChangesNothing() {
        #expect(PictureGeometry(width: 33, height: 21, options: SizeOptions()).isIdentity)
        #expect(PictureGeometry(width: 33, height: 21, options: SizeOptions(width: 33, height: 50)).isIdentity)
        #expect(!PictureGeometry(width: 33, height: 21, options: SizeOptions(width: 32)).isIdentity)
        #expect(!PictureGeometry(width: 33, height: 21, options: SizeOptions(width: 33, height: 20, fit: .cover)).isIdentity)
    }

    @Test func oneSideKeepsTheAspectRatioAndNeverEnlarges() {
        #expect(size((640, 480), 320, nil) == [320, 240])
        #expect(size((640, 480), nil, 100) == [133, 100])
        #expect(size((640, 480), 1000, nil) == [640, 480])
        #expect(size((640, 480), nil, 481) == [640, 480])
        #expect(size((4096, 3), 2, nil) == [2, 1])
    }

    @Test func containStaysInsideTheBox() {
        #expect(size((640, 480), 320, 320) == [320, 240])
        #expect(size((480, 640), 320, 320) == [240, 320])
        #expect(size((640, 480), 900, 300) == [400, 300])
        #expect(size((640, 480), 900, 900) == [640, 480])
        for width in 2...60 {
            let size = size((37, 53), width, 40)
            #expect(size[0] <= width && size[1] <= 40 && size[0] >= 1)
        }
    }

    @Test func coverFillsTheBoxAndCutsBothSidesAlike() {
        #expect(size((640, 480), 100, 100, .cover) == [100, 100])
        #expect(part((640, 480), 100, 100) == Rectangle(x: 80, y: 0, width: 480, height: 480))
        #expect(part((480, 640), 100, 100) == Rectangle(x: 0, y: 80, width: 480, height: 480))
        // Larger than the canvas: the box' shape, as large as the canvas allows.
        #expect(size((500, 400), 1000, 500, .cover) == [500, 250])
        #expect(part((500, 400), 1000, 500) == Rectangle(x: 0, y: 75, width: 500, height: 250))
        for width in 2...60 {
            for height in [2, 3, 50, 90] {
                let part = part((37, 53), width, height)
                let size = size((37, 53), width, height, .cover)
                #expect(part.x >= 0 && part.y >= 0 && part.maxX <= 37 && part.maxY <= 53)
                #expect(size[0] <= part.width && size[1] <= part.height, "\(width)×\(height): never enlarged")
            }
        }
    }

    @Test func fillDistortsAndNeverEnlarges() {
        #expect(size((640, 480), 100, 400, .fill) == [100, 400])
        #expect(size((640, 480), 1000, 100, .fill) == [640, 100])
    }
}

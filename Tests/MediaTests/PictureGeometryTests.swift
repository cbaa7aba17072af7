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

    @Test(arguments: [
        (Gravity.center, 80), (Gravity(x: 0, y: 500), 0), (Gravity(x: 1000, y: 0), 160), (Gravity(x: 300, y: 0), 0),
        (Gravity(x: 400, y: 1000), 16), (Gravity(x: 625, y: 500), 160), (Gravity(x: 500, y: 0), 80),
    ])
    func aCropHasThePointInItsMiddleWhereTheEdgesAllow(_ gravity: Gravity, _ x: Int) {
        let options = SizeOptions(width: 100, height: 100, fit: .cover, gravity: gravity)
        let wide = PictureGeometry(width: 640, height: 480, options: options)
        #expect(wide.source == Rectangle(x: x, y: 0, width: 480, height: 480))
        let turned = SizeOptions(width: 100, height: 100, fit: .cover, gravity: Gravity(x: gravity.y, y: gravity.x))
        let tall = PictureGeometry(width: 480, height: 640, options: turned)
        #expect(tall.source == Rectangle(x: 0, y: x, width: 480, height: 480))
    }

    @Test func padHasTheSizeOfTheBoxAndNeverEnlargesThePicture() {
        func geometry(_ width: Int, _ height: Int) -> PictureGeometry {
            PictureGeometry(width: 64, height: 48, options: SizeOptions(width: width, height: height, fit: .pad))
        }
        for width in [2, 31, 64, 65, 90, 501] {
            for height in [2, 33, 48, 49, 77, 300] {
                let geometry = geometry(width, height)
                let content = geometry.content
                #expect(geometry.width == width && geometry.height == height)
                #expect(content.maxX <= width && content.maxY <= height && content.width <= 64 && content.height <= 48)
                #expect(content.x % 2 == 0 && content.y % 2 == 0)
                #expect(abs(content.x - (width - content.maxX)) <= 3 && abs(content.y - (height - content.maxY)) <= 3)
                #expect(geometry.source == Rectangle(x: 0, y: 0, width: 64, height: 48))
            }
        }
        #expect(geometry(64, 48).isIdentity && !geometry(64, 48).hasMargin && !geometry(65, 48).isIdentity)
        #expect(geometry(65, 48).hasMargin && !geometry(65, 48).isScaled && geometry(60, 60).isScaled)
    }
}

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

import TestSupport
import Testing

@testable import Media

@Suite("The motion of blocks") struct MotionFieldTests {
    private static let width = 90
    private static let height = 70

    /// A smooth pattern that repeats nowhere near, moved by a number of pixels.
    private func plane(movedBy x: Double, _ y: Double) throws -> BorderedPlane {
        let canvas = try Canvas(width: Self.width, height: Self.height, format: .yuv(background: .white))
        for index in 0..<Self.width * Self.height {
            let (u, v) = (Double(index % Self.width) - x, Double(index / Self.width) - y)
            // Triangle waves whose lengths have no common multiple in the picture.
            func wave(_ value: Double, _ length: Double) -> Double {
                let part = value / length - (value / length).rounded(.down)
                return (abs(part - 0.5) * 2) * (abs(part - 0.5) * 2)
            }
            let level = 40 + 60 * wave(u, 37) + 60 * wave(v, 41) + 40 * wave(u + v, 29)
            canvas.pixels[index] = UInt32(level.rounded())
        }
        let plane = try BorderedPlane(width: Self.width, height: Self.height)
        plane.load(canvas)
        return plane
    }

    private func field(from picture: BorderedPlane, to other: BorderedPlane) throws -> MotionField {
        let hint = try MotionField(width: Self.width, height: Self.height)
        let field = try MotionField(width: Self.width, height: Self.height)
        field.search(0..<field.columns, 0..<field.rows, of: picture, in: other, hint: hint)
        return field
    }

    @Test func aPictureThatStandsStillHasNoMotion() throws {
        let field = try field(from: plane(movedBy: 0, 0), to: plane(movedBy: 0, 0))
        for row in 0..<field.rows {
            for column in 0..<field.columns {
                #expect(field[column, row] == MotionField.Vector(x: 0, y: 0, difference: 0))
            }
        }
    }

    @Test(arguments: [(3.0, -2.0), (-5, 4), (0, 7), (2.5, 0), (0, -1.5)])
    func aMoveOfWholeAndHalfPixelsIsFound(_ x: Double, _ y: Double) throws {
        let field = try field(from: plane(movedBy: 0, 0), to: plane(movedBy: x, y))
        // Blocks at the edges see pixels that are only in one of the pictures.
        for row in 1..<field.rows - 2 {
            for column in 1..<field.columns - 2 {
                let vector = field[column, row]
                // Rounding to levels may make half a pixel look better in a direction without a fraction.
                let isExact = x == x.rounded() && y == y.rounded()
                let tolerance = isExact ? 0 : 0.5
                #expect(abs(Double(vector.x) / 2 - x) <= tolerance && abs(Double(vector.y) / 2 - y) <= tolerance)
                #expect(isExact ? vector.difference == 0 : vector.difference < 512)
            }
        }
    }

    @Test func placesFarOutsideThePictureAreNotRead() throws {
        let (picture, other) = try (plane(movedBy: 0, 0), plane(movedBy: 25, 25))
        let fields = try (
            MotionField(width: Self.width, height: Self.height), MotionField(width: Self.width, height: Self.height)
        )
        // The motion goes on and on in one direction.
        for _ in 0..<10 {
            fields.0.search(0..<fields.0.columns, 0..<fields.0.rows, of: picture, in: other, hint: fields.1)
            fields.1.search(0..<fields.1.columns, 0..<fields.1.rows, of: other, in: picture, hint: fields.0)
        }
        for field in [fields.0, fields.1] {
            for row in 0..<field.rows {
                for column in 0..<field.columns {
                    let (x, y) = (Int(field[column, row].x) / 2, Int(field[column, row].y) / 2)
                    #expect(column * 16 + x >= -30 && column * 16 + x <= field.columns * 16 + 14)
                    #expect(row * 16 + y >= -30 && row * 16 + y <= field.rows * 16 + 14)
                }
            }
        }
    }

    /// Each block is a little further away than the one before it.
    @Test func aPictureThatIsStretchedHasNoEndlessMotion() throws {
        let width = 40_000
        func plane(stretch: Double) throws -> BorderedPlane {
            let canvas = try Canvas(width: width, height: 16, format: .yuv(background: .white))
            for index in 0..<width * 16 {
                // A line whose steepness tells the place, in waves that are longer than any step of the search.
                let place = Double(index % width) / stretch
                let wave = abs((place / 400).truncatingRemainder(dividingBy: 2) - 1)
                canvas.pixels[index] = UInt32(20 + 200 * wave)
            }
            let plane = try BorderedPlane(width: width, height: 16)
            plane.load(canvas)
            return plane
        }
        let fields = try (MotionField(width: width, height: 16), MotionField(width: width, height: 16))
        fields.0.search(0..<fields.0.columns, 0..<1, of: try plane(stretch: 1), in: try plane(stretch: 1.35), hint: fields.1)
        let motions = (0..<fields.0.columns).map { abs(Int(fields.0[$0, 0].x)) }
        #expect(motions.allSatisfy { $0 <= 2001 })
        #expect(motions.contains { $0 > 1000 }, "\(motions.max() ?? 0)")
    }

    @Test func blocksThatAreNotSearchedStandStill() throws {
        let field = try MotionField(width: Self.width, height: Self.height)
        let hint = try MotionField(width: Self.width, height: Self.height)
        let (picture, other) = try (plane(movedBy: 0, 0), plane(movedBy: 4, 4))
        field.search(0..<field.columns, 0..<field.rows, of: picture, in: other, hint: hint)
        field.search(0..<1, 0..<1, of: picture, in: other, hint: hint)
        #expect(field[2, 2] == MotionField.Vector())
    }

    @Test func theBorderRepeatsTheEdges() throws {
        let plane = try plane(movedBy: 0, 0)
        let (last, border) = (plane.samples + (Self.height - 1) * plane.stride, BorderedPlane.border)
        #expect(plane.samples[-border] == plane.samples[0])
        #expect(plane.samples[-border * plane.stride - border] == plane.samples[0])
        #expect(last[Self.width + border - 1] == last[Self.width - 1])
        #expect(last[border * plane.stride + Self.width] == last[Self.width - 1])
    }
}

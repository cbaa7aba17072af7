/// Writes ICC profiles (ICC.1:2022).
package struct ICCProfile: Sendable {
    /// The data colour space of the header.
    package var model = "RGB "
    package var tags: [(name: String, data: [UInt8])]

    /// Display P3: matrix and curves.
    package static let displayP3 = matrix(
        (0.515_12, 0.2412, -0.001_05), (0.291_98, 0.692_25, 0.041_89), (0.1571, 0.066_57, 0.784_07), sRGBCurve)
    /// sRGB, as most files describe it.
    package static let sRGB = matrix(
        (0.436_07, 0.222_49, 0.013_92), (0.385_15, 0.716_87, 0.097_08), (0.143_07, 0.060_61, 0.714_1), sRGBCurve)
    /// Grey samples that are proportional to light.
    package static let linearGrey = ICCProfile(
        model: "GRAY", tags: [("wtpt", xyz(0.9642, 1, 0.8249)), ("kTRC", curve(0, [1]))])

    /// The curve of sRGB as a parametric curve.
    package static let sRGBCurve = curve(3, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.040_45])

    package typealias Color = (Double, Double, Double)

    package static func matrix(_ red: Color, _ green: Color, _ blue: Color, _ curve: [UInt8]) -> ICCProfile {
        ICCProfile(tags: [
            ("wtpt", xyz(0.9642, 1, 0.8249)), ("rXYZ", xyz(red.0, red.1, red.2)), ("gXYZ", xyz(green.0, green.1, green.2)),
            ("bXYZ", xyz(blue.0, blue.1, blue.2)), ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
        ])
    }

    /// A table from samples to the space of the connection: `mft1` with the corners of the cube, three bytes each.
    package static func table(_ corners: [[UInt8]]) -> [UInt8] {
        let identity = (0...255).map(UInt8.init)
        let matrix = [1, 0, 0, 0, 1, 0, 0, 0, 1].flatMap { fixed($0) }
        return Array("mft1".utf8) + number(0) + [3, 3, 2, 0] + matrix + identity + identity + identity + corners.flatMap { $0 }
            + identity + identity + identity
    }

    package static func curve(_ kind: UInt8, _ parameters: [Double]) -> [UInt8] {
        Array("para".utf8) + number(0) + [0, kind, 0, 0] + parameters.flatMap(fixed)
    }

    package static func xyz(_ x: Double, _ y: Double, _ z: Double) -> [UInt8] {
        Array("XYZ ".utf8) + number(0) + fixed(x) + fixed(y) + fixed(z)
    }

    private static func fixed(_ value: Double) -> [UInt8] { number(Int32((value * 65536).rounded())) }

    private static func number(_ value: Int32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    package init(model: String = "RGB ", tags: [(name: String, data: [UInt8])]) {
        self.model = model
        self.tags = tags
    }

    /// The profile as a file. `space` is that of the connection.
    package func bytes(space: String = "XYZ ") -> [UInt8] {
        var table = Self.number(Int32(tags.count))
        var data: [UInt8] = []
        let start = 132 + 12 * tags.count
        for tag in tags {
            table += Array(tag.name.utf8) + Self.number(Int32(start + data.count)) + Self.number(Int32(tag.data.count))
            data += tag.data + [UInt8](repeating: 0, count: (4 - tag.data.count % 4) % 4)
        }
        var head = Self.number(Int32(start + data.count)) + Self.number(0) + [4, 0x30, 0, 0]
        head += Array("mntr\(model)\(space)".utf8) + [UInt8](repeating: 0, count: 12) + Array("acsp".utf8)
        head += [UInt8](repeating: 0, count: 28) + Self.fixed(0.9642) + Self.fixed(1) + Self.fixed(0.8249)
        head += [UInt8](repeating: 0, count: 128 - head.count)
        return head + table + data
    }
}

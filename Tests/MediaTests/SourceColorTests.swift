import TestSupport
import Testing

@testable import Media

/// The expected colours are Chromium's for the same files.
@Suite("Colours of PNGs and WebPs are converted to sRGB") struct SourceColorTests {
    private typealias Chunk = APNGBuilder.Chunk
    typealias Color = [Int]

    private static let samples: [Color] = [[117, 251, 76], [100, 100, 100], [30, 60, 200], [250, 200, 20], [5, 9, 3]]

    private static let p3: [Color] = [[2, 255, 0], [100, 100, 100], [17, 61, 208], [255, 198, 0], [4, 9, 2]]
    private static let linear: [Color] = [[180, 253, 148], [168, 168, 168], [96, 133, 229], [253, 229, 79], [38, 53, 28]]

    private static func gamma(_ value: Int) -> Chunk { Chunk("gAMA", APNGBuilder.number(value)) }

    private static func chromaticities(_ values: [Int]) -> Chunk { Chunk("cHRM", values.flatMap(APNGBuilder.number)) }

    private static let p3Points = chromaticities([31_270, 32_900, 68_000, 32_000, 26_500, 69_000, 15_000, 6_000])

    private static func profile(_ profile: ICCProfile, space: String = "XYZ ") -> Chunk {
        Chunk("iCCP", [65, 0, 0] + APNGBuilder.stored(profile.bytes(space: space)))
    }

    private static let sRGB = Chunk("sRGB", [0])

    private static let codePoints: [(UInt8, UInt8, [Color])] = [
        (12, 13, p3), (1, 8, linear), (9, 14, [[0, 255, 0], [91, 91, 91], [0, 48, 207], [255, 190, 0], [0, 1, 0]]),
        (1, 1, [[109, 251, 66], [91, 91, 91], [18, 49, 197], [250, 197, 7], [0, 1, 0]]),
        (1, 4, [[118, 251, 75], [100, 100, 100], [24, 57, 201], [250, 201, 12], [1, 2, 0]]),
        (1, 5, [[94, 250, 52], [76, 76, 76], [8, 36, 189], [249, 189, 3], [0, 0, 0]]),
        (1, 17, [[106, 255, 61], [87, 87, 87], [13, 44, 200], [255, 200, 5], [0, 1, 0]]),
        (4, 13, [[0, 246, 48], [100, 100, 100], [0, 82, 206], [255, 192, 0], [4, 9, 3]]),
        (5, 13, [[106, 251, 81], [100, 100, 100], [28, 60, 199], [252, 200, 31], [5, 9, 3]]),
        (8, 13, [[0, 255, 33], [100, 100, 100], [0, 54, 207], [255, 199, 0], [4, 9, 3]]),
        (10, 13, [[0, 255, 0], [100, 100, 100], [0, 88, 212], [255, 117, 0], [0, 13, 2]]),
        (11, 13, [[67, 255, 1], [100, 100, 100], [19, 59, 208], [255, 198, 0], [4, 9, 2]]),
        (22, 13, [[110, 246, 75], [100, 100, 100], [30, 70, 200], [251, 198, 14], [5, 9, 3]]),
        (1, 13, samples), (6, 7, samples), (7, 13, samples),
    ]

    private func shown(_ chunks: [Chunk], samples: [Color] = Self.samples) throws -> [Color] {
        var png = APNGBuilder(width: samples.count, height: 1, coding: .init(type: 2), head: chunks)
        for _ in 0..<2 { png.add(.init(width: samples.count, height: 1, samples: samples.flatMap { $0 })) }
        let canvases = try Animation.compose(png.finish()).canvases
        #expect(canvases.count == 2 && canvases[0] == canvases[1])
        return canvases[0].map(color)
    }

    private func color(_ word: UInt32) -> Color { [0, 8, 16].map { Int(word >> $0 & 255) } }

    private func expect(_ shown: [Color], _ expected: [Color], _ name: String = "") {
        let difference = zip(shown.joined(), expected.joined()).map { abs($0 - $1) }.max() ?? 0
        #expect(shown.count == expected.count && difference <= 2, "\(name): \(shown)")
    }

    @Test func codePointsOfVideoAreConverted() throws {
        for (primaries, transfer, expected) in Self.codePoints {
            expect(try shown([Chunk("cICP", [primaries, transfer, 0, 1])]), expected, "\(primaries), \(transfer)")
        }
    }

    @Test func highRangesAreCompressed() throws {
        let greys = stride(from: 16, to: 256, by: 16).map { [$0, $0, $0] }
        func expected(_ levels: [Int]) -> [Color] { levels.map { [$0, $0, $0] } }
        for primaries: UInt8 in [1, 9, 12] {
            let pq = try shown([Chunk("cICP", [primaries, 16, 0, 1])], samples: greys)
            expect(pq, expected([1, 5, 15, 30, 48, 70, 98, 132, 175, 213, 237, 255, 255, 255, 255]), "\(primaries)")
            let hlg = try shown([Chunk("cICP", [primaries, 18, 0, 1])], samples: greys)
            expect(hlg, expected([3, 14, 29, 43, 57, 71, 85, 99, 115, 135, 160, 189, 212, 228, 243]), "\(primaries)")
        }
        let pq = [[21, 255, 4], [76, 76, 76], [1, 11, 255], [255, 134, 0], [0, 0, 0]]
        expect(try shown([Chunk("cICP", [1, 16, 0, 1])]), pq)
        let hlg = [[0, 255, 0], [75, 75, 75], [0, 41, 176], [255, 138, 0], [0, 1, 0]]
        expect(try shown([Chunk("cICP", [9, 18, 0, 1])]), hlg)
    }

    @Test func gammasAndChromaticitiesAreConverted() throws {
        let p3 = [[11, 255, 0], [100, 100, 100], [6, 58, 209], [255, 199, 0], [0, 2, 0]]
        expect(try shown([Self.gamma(100_000)]), Self.linear)
        expect(
            try shown([Self.gamma(55_556)]), [[136, 252, 94], [119, 119, 119], [40, 77, 210], [251, 210, 26], [3, 8, 1]])
        expect(try shown([Self.gamma(45_455), Self.p3Points]), p3)
        // A gamma that is near that of sRGB stands for it; 0 is none.
        for gamma in [43_200, 45_455, 47_600, 0] { #expect(try shown([Self.gamma(gamma)]) == Self.samples) }
        for gamma in [1, 1 << 31] { _ = try shown([Self.gamma(gamma)]) }
        // Chromaticities say nothing without gamma, and invalid ones make the gamma useless.
        #expect(try shown([Self.p3Points]) == Self.samples)
        for points in [[Int](repeating: 0, count: 8), [Int](repeating: 30_000, count: 8), [Int](repeating: 1 << 31, count: 8)] {
            #expect(try shown([Self.gamma(100_000), Self.chromaticities(points)]) == Self.samples)
        }
    }

    @Test func profilesAreConverted() throws {
        expect(try shown([Self.profile(.displayP3)]), Self.p3)
        // Most files have one that describes sRGB. It changes nothing, not even by rounding.
        #expect(try shown([Self.profile(.sRGB)]) == Self.samples)
        // A table that makes every colour the grey of half the lightness. That of another intent and floating point do not count.
        let grey = ICCProfile.table(Array(repeating: [128, 128, 128], count: 8))
        let white = ICCProfile.table(Array(repeating: [255, 128, 128], count: 8))
        var tables = ICCProfile(tags: [("A2B1", white), ("A2B0", grey), ("D2B0", white)])
        expect(try shown([Self.profile(tables, space: "Lab ")]), Array(repeating: [119, 119, 119], count: 5))
        tables.tags.removeFirst()
        expect(try shown([Self.profile(tables, space: "Lab ")]), Array(repeating: [119, 119, 119], count: 5))
    }

    @Test func theMostPreciseChunkCounts() throws {
        let (profile, gamma) = (Self.profile(.displayP3), Self.gamma(100_000))
        expect(try shown([Chunk("cICP", [1, 8, 0, 1]), profile, Self.sRGB]), Self.linear)
        expect(try shown([Self.sRGB, profile]), Self.p3)
        expect(try shown([gamma, profile]), Self.p3)
        expect(try shown([gamma, Self.sRGB]), Self.samples)
        // Code points that are unknown, of limited range or after the palette count as none.
        for codePoints: [UInt8] in [[2, 2, 0, 1], [12, 13, 0, 0], [12, 13, 1, 1], [3, 16, 0, 1], [12, 13, 0, 1, 0]] {
            expect(try shown([Chunk("cICP", codePoints), gamma]), Self.linear)
        }
        expect(try shown([Chunk("PLTE", [1, 2, 3]), Chunk("cICP", [12, 13, 0, 1]), gamma]), Self.linear)
        expect(try shown([Chunk("sRGB", [4]), gamma]), Self.linear)
        expect(try shown([gamma, Self.gamma(55_556)]), Self.linear)
    }

    @Test func brokenProfilesCountAsNone() throws {
        let sound = Self.profile(.displayP3)
        let bytes = ICCProfile.displayP3.bytes()
        func packed(_ bytes: [UInt8]) -> Chunk { Chunk("iCCP", [65, 0, 0] + APNGBuilder.stored(bytes)) }
        var (checksum, adler, method, nameless) = (sound, sound, sound, sound)
        checksum.isSound = false
        adler.data[adler.data.count - 1] ^= 1
        method.data[2] = 1
        nameless.data.removeFirst()
        var missing = ICCProfile.displayP3
        missing.tags.removeLast(2)
        var broken = [
            checksum, adler, method, nameless, packed(Array(bytes.dropLast())), packed([]), packed([1, 2, 3]),
            Self.profile(missing),
        ]
        broken += [Self.profile(.linearGrey), Chunk("iCCP", []), Chunk("iCCP", [65]), Chunk("iCCP", [65, 0, 0])]
        let endless = bytes + [UInt8](repeating: 0, count: ColorConversion.maximumProfile)
        broken.append(Chunk("iCCP", [65, 0, 0] + ZlibStream.compressed(endless)))
        for (index, chunk) in broken.enumerated() {
            #expect(try shown([chunk]) == Self.samples, "\(index)")
            expect(try shown([chunk, Self.gamma(100_000)]), Self.linear, "\(index)")
        }
        expect(try shown([packed(bytes + [1, 2, 3])]), Self.p3)
    }

    @Test func greysPalettesAndAlphaAreConverted() throws {
        let greys = [0, 5, 30, 100, 128, 200, 250, 255]
        let lighter = [0, 38, 96, 168, 188, 229, 253, 255].map { [$0, $0, $0] }
        for chunk in [Self.gamma(100_000), Self.profile(.linearGrey), Chunk("cICP", [12, 8, 0, 1])] {
            for (coding, alpha) in [(APNGBuilder.Coding(type: 0), 255), (.init(type: 4), 7), (.init(type: 0, depth: 16), 255)] {
                var png = APNGBuilder(width: 8, height: 1, coding: coding, head: [chunk])
                png.add(
                    .init(
                        width: 8, height: 1,
                        samples: greys.flatMap { coding.type == 4 ? [$0, alpha] : [coding.depth == 16 ? $0 * 257 : $0] }))
                let words = try Animation.compose(png.finish()).canvases[0]
                expect(words.map(color), lighter, chunk.type)
                #expect(words.allSatisfy { Int($0 >> 24) == alpha })
            }
        }
        let palette = Chunk("PLTE", Self.samples.flatMap { $0.map(UInt8.init) })
        var png = APNGBuilder(
            width: 5, height: 1, coding: .init(type: 3), head: [Self.profile(.displayP3), palette, Chunk("tRNS", [255, 128])])
        for _ in 0..<2 { png.add(.init(width: 5, height: 1, samples: Array(0..<5))) }
        let canvases = try Animation.compose(png.finish()).canvases
        expect(canvases[1].map(color), Self.p3)
        #expect(canvases[0] == canvases[1] && canvases[1].map { $0 >> 24 } == [255, 128, 255, 255, 255])
        var translucent = APNGBuilder(width: 5, height: 1, head: [Self.gamma(100_000)])
        translucent.add(.init(width: 5, height: 1, samples: Self.samples.enumerated().flatMap { $1 + [$0 * 50 + 50] }))
        let words = try Animation.compose(translucent.finish()).canvases[0]
        expect(words.map(color), Self.linear)
        #expect(words.map { $0 >> 24 } == [50, 100, 150, 200, 250])
    }

    @Test func profilesOfWebPsAreConverted() throws {
        func shown(_ profile: [UInt8]?) throws -> [Color] {
            var webp = WebPBuilder(width: 5, height: 1, profile: profile)
            let words = Self.samples.map { UInt32($0[0]) | UInt32($0[1]) << 8 | UInt32($0[2]) << 16 | Word.black }
            for _ in 0..<2 { webp.add(.init(width: 5, height: 1, words: words)) }
            return try Animation.compose(webp.finish()).canvases[1].map(color)
        }
        expect(try shown(ICCProfile.displayP3.bytes()), Self.p3)
        for profile in [nil, [], [1, 2, 3], ICCProfile.sRGB.bytes(), ICCProfile.linearGrey.bytes()] {
            #expect(try shown(profile) == Self.samples)
        }
    }

    @Test func outputsHaveTheConvertedColours() throws {
        var png = APNGBuilder(width: 16, height: 16, coding: .init(type: 2), head: [Self.profile(.displayP3)])
        png.add(.init(width: 16, height: 16, samples: Array(repeating: [117, 251, 76], count: 256).flatMap { $0 }))
        let poster = try Converted(png.finish(), as: .png) { _ in }
        expect([color(try poster.picture()[0])], [Self.p3[0]])
    }
}

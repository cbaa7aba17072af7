import TestSupport
import Testing

@testable import Media

@Suite("Colours are converted by BT.709")
struct PixelTests {
    /// BT.709 limited range in floating point (ITU-R BT.709-6 §3), to compare with.
    private func exact(_ color: RGB) -> (Double, Double, Double) {
        let (r, g, b) = (Double(color.red) / 255, Double(color.green) / 255, Double(color.blue) / 255)
        let y = 0.2126 * r + 0.7152 * g + 0.0722 * b
        return (16 + 219 * y, 128 + 224 * (b - y) / 1.8556, 128 + 224 * (r - y) / 1.5748)
    }

    @Test func everyColourIsConvertedWithinHalfAStep() {
        let format = PixelFormat.yuv(background: .white)
        for value in stride(from: 0, to: 1 << 24, by: 997) {
            let color = RGB(red: UInt8(value >> 16), green: UInt8(value >> 8 & 255), blue: UInt8(value & 255))
            let word = format.pack(color)
            let (y, cb, cr) = exact(color)
            #expect(abs(Double(word & 255) - y) <= 0.51)
            #expect(abs(Double(word >> 8 & 4095) / 16 - cb) <= 0.05)
            #expect(abs(Double(word >> 20) / 16 - cr) <= 0.05)
        }
    }

    @Test func greyHasNoColour() {
        for level in UInt8.min...UInt8.max {
            let word = PixelFormat.yuv(background: .white).pack(RGB(red: level, green: level, blue: level))
            #expect(word >> 8 & 4095 == 2048 && word >> 20 == 2048)
        }
    }

    @Test func interlacedRowsComeOnceEachInFourPasses() {
        for count in [1, 2, 3, 5, 8, 9, 17] {
            var rows = InterlacedRows(count: count, isInterlaced: true)
            var seen: [Int] = []
            while let row = rows.next() { seen.append(row) }
            #expect(seen.sorted() == Array(0..<count))
            #expect(seen == [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0, to: count, by: $1)) })
        }
    }

    @Test func clockAddsWhatIsShown() {
        var clock = FrameClock()
        let times = [0, 1, 2, 65535, 7].map { clock.advance(by: $0) }
        #expect(times.map(\.start) == [0, 10, 20, 22, 65557])
        #expect(times.map(\.duration) == [10, 10, 2, 65535, 7])
        #expect(clock.now == 65564)
    }

    @Test func timesAreFoundByTheirIndexHoweverManyWait() {
        var times = TimeWindow()
        var next = 0
        for count in [3, 64, 65, 300] {
            let first = next
            for _ in 0..<count {
                times.append(Int64(next) * 7)
                next += 1
            }
            for index in first..<next { #expect(times[index] == Int64(index) * 7) }
            times.removeFirst(upTo: next - 1)
            #expect(times[next - 1] == Int64(next - 1) * 7)
            times.removeFirst(upTo: -3)
        }
    }

    @Test func onlySupplementalInformationIsTakenOut() {
        let parameter: [UInt8] = [0, 0, 0, 1, 0x67, 1, 2]
        let supplemental: [UInt8] = [0, 0, 1, 0x06, 5, 9, 9]
        let slice: [UInt8] = [0, 0, 0, 1, 0x65, 0, 0, 3, 0, 7]
        func stripped(_ bytes: [UInt8]) -> [UInt8] {
            var bytes = bytes
            let count = bytes.withUnsafeMutableBufferPointer { AnnexB.removeSupplementalInformation($0) }
            return Array(bytes.prefix(count))
        }
        #expect(stripped(supplemental + slice) == slice)
        #expect(stripped(parameter + supplemental + slice) == parameter + slice)
        #expect(stripped(slice) == slice)
        #expect(stripped(supplemental) == supplemental)
        #expect(stripped([]) == [])
    }

    @Test func qualityMapsToTheRateFactorItsDocumentationSays() {
        let film = PictureContent(isDrawing: false)
        let undithered = PictureContent(isDrawing: false, isUndithered: true)
        for (content, middle) in [(film, 18.3), (PictureContent(isDrawing: true), 20), (undithered, 18.1)] {
            #expect(H264Settings.rateFactor(quality: 60, content) == middle)
            #expect(abs(H264Settings.rateFactor(quality: 100, content) - 7.1) < 1e-9)
            #expect(abs(H264Settings.rateFactor(quality: 1, content) - 42.7) < 1e-9)
        }
    }

    @Test func aFilmWithoutItsDitherIsCoarserWhereDetailHidesTheLoss() {
        func factor(_ detail: Double) -> Double {
            H264Settings.rateFactor(quality: 60, PictureContent(isDrawing: false, isUndithered: true, detail: detail))
        }
        #expect(factor(0) == 18.1 && factor(120) == 18.1)
        #expect(abs(factor(240) - 19.25) < 1e-9)
        #expect(factor(350) > factor(240) && factor(350) < 20)
        #expect(factor(500) == 20 && factor(65_025) == 20)
    }

    @Test func detailIsWhatIsLeftWithoutDither() throws {
        func energy(_ level: (_ x: Int, _ y: Int) -> UInt8) throws -> Double {
            let canvas = try Canvas(width: 9, height: 5, format: .rgba)
            for y in 0..<5 {
                for x in 0..<9 {
                    let level = level(x, y)
                    canvas.pixels[y * 9 + x] = PixelFormat.rgba.pack(RGB(red: level, green: level, blue: level))
                }
            }
            return FilmDetail.energy(of: canvas)
        }
        #expect(try energy { x, y in (x + y) % 2 == 0 ? 100 : 140 } == 0)
        #expect(try energy { x, _ in x / 2 % 2 == 0 ? 100 : 110 } == 100)
        #expect(try energy { x, y in (x / 2 % 2 == 0 ? 100 : 110) + ((x + y) % 2 == 0 ? 0 : 40) } == 100)
    }
}

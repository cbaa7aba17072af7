import TestSupport
import Testing

@testable import Media

@Suite("LZW data is decoded within bounds")
struct LZWDecoderTests {
    /// Decodes a code stream that comes in pieces of `step` bytes.
    private func decode(_ codes: [UInt8], codeSize: Int, pixels: Int, step: Int = 255) throws -> [UInt8] {
        var decoder = try LZWDecoder()
        var output = [UInt8](repeating: 0xee, count: pixels + LZWDecoder.slack + 8)
        let count = output.withUnsafeMutableBufferPointer { output in
            guard let base = output.baseAddress else { return 0 }
            decoder.begin(minimumCodeSize: codeSize, output: base, pixels: pixels)
            for start in stride(from: 0, to: codes.count, by: step) {
                codes[start..<min(start + step, codes.count)].withUnsafeBufferPointer { decoder.decode($0) }
            }
            return decoder.count
        }
        #expect(output.suffix(8).allSatisfy { $0 == 0xee }, "wrote past its slack")
        return Array(output.prefix(count))
    }

    @Test(arguments: 0...8) func decodesWhatAnEncoderWrote(_ codeSize: Int) throws {
        var state: UInt32 = 7
        for (count, spread) in [(1, 2), (300, 1), (20_000, 3), (60_000, 255)] {
            let pixels = (0..<count).map { _ -> UInt8 in
                state = state &* 1_664_525 &+ 1_013_904_223
                return UInt8(Int(state >> 16) % spread % (1 << codeSize))
            }
            let codes = LZWEncoder.encode(pixels, minimumCodeSize: codeSize)
            for step in [1, 7, 255] { #expect(try decode(codes, codeSize: codeSize, pixels: count, step: step) == pixels) }
        }
    }

    @Test func codesOfSmallSizesGrowAfterTheFirstPixel() throws {
        // Code size 1: clear (2), 0, then with three bits 1, 4 (the string 0 1) and the end code (3).
        #expect(try decode([0b0_001_00_10, 0b011_10], codeSize: 1, pixels: 4) == [0, 1, 0, 1])
        // Code size 0: clear (1), 0, then with two bits 3 (the string 0 0), and with three bits 4 (0 0 0) and the end code (2).
        #expect(try decode([0b0_100_11_0_1, 0b01], codeSize: 0, pixels: 6) == [0, 0, 0, 0, 0, 0])
    }

    @Test func aStringThatIsBeingDefinedIsRead() throws {
        // A run is coded by strings each of which is used right when it is defined.
        let runs = LZWEncoder.encode(Array(repeating: 1, count: 1000), minimumCodeSize: 2)
        #expect(try decode(runs, codeSize: 2, pixels: 1000) == Array(repeating: 1, count: 1000))
    }

    @Test func aCodeThatCannotBeEndsTheImage() throws {
        // Code size 2: clear (4), literal 1, then 7, which is beyond the next free code (6).
        let codes: [UInt8] = [0b11_001_100, 0b0000_0001]
        #expect(try decode(codes, codeSize: 2, pixels: 16) == [1])
    }

    @Test func aStringBeforeAnyLiteralEndsTheImage() throws {
        // Clear (4), then 6 at once.
        #expect(try decode([0b00_110_100], codeSize: 2, pixels: 16) == [])
    }

    @Test func noCodeIsNeededToBegin() throws {
        // Literals 1, 2 and the end code (5) without a clear code before them.
        #expect(try decode([0b01_010_001, 0b0000_0001], codeSize: 2, pixels: 16) == [1, 2])
    }

    /// The first code is the literal 1, however many bits a code has.
    @Test(arguments: [12, 20, 31, 32, 255]) func anImageOfAnotherCodeSizeHasNoPixels(_ codeSize: Int) throws {
        #expect(try decode([1] + [UInt8](repeating: 0, count: 63), codeSize: codeSize, pixels: 16) == [])
    }

    @Test func anyBytesStayInBounds() throws {
        var state: UInt64 = 1
        for round in 0..<2000 {
            let bytes = (0..<64).map { _ -> UInt8 in
                state = state &* 6_364_136_223_846_793_005 &+ 1
                return UInt8(truncatingIfNeeded: state >> 40)
            }
            let pixels = round % 97
            #expect(try decode(bytes, codeSize: round % 12, pixels: pixels).count <= pixels)
        }
    }
}

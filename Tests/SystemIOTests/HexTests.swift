import SystemIO
import TestSupport
import Testing

@Suite("Hexadecimal text has two lower-case digits per byte") struct HexTests {
    @Test(arguments: UInt64(0)..<20) func bytesRoundTrip(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let bytes = (0..<Int.random(in: 0...100, using: &numbers)).map { _ in UInt8.random(in: .min ... .max, using: &numbers) }
        let text = Hex.encode(bytes)
        #expect(text.utf8.count == bytes.count * 2)
        #expect(text == bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
        #expect(Hex.decode(text.utf8) == bytes)
    }

    @Test(arguments: ["0", "0g", "AB", " 0", "0x", "é", "00\u{0}"]) func otherTextsAreRefused(text: String) {
        #expect(Hex.decode(text.utf8) == nil)
    }

    @Test func numbersHaveAllTheirDigits() {
        #expect(Hex.encode(0 as UInt64) == "0000000000000000")
        #expect(Hex.encode(0x0123_4567_89ab_cdef as UInt64) == "0123456789abcdef")
        #expect(Hex.encode(UInt128.max) == String(repeating: "f", count: 32))
        #expect(Hex.encode(1 as UInt8) == "01")
    }
}

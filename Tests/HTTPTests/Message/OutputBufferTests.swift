import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("An output buffer encodes bytes one after the other") struct OutputBufferTests {
    private func text(_ output: OutputBuffer) -> String { String(decoding: output.bytes, as: UTF8.self) }

    @Test func decimalNumbersAreThoseOfTheStandardLibrary() {
        let output = OutputBuffer(capacity: 1)
        var random = SeededNumbers(seed: 5)
        let edges = (0..<19).flatMap { exponent in
            let power = (0..<exponent).reduce(1) { value, _ in value * 10 }
            return [power - 1, power, power + 1]
        }
        for number in edges + [.max] + (0..<200).map({ _ in Int(random.next() >> (random.next() % 63 + 1)) }) {
            output.restart()
            output.append(decimal: number)
            #expect(text(output) == String(number))
        }
    }

    @Test func requestIDsHaveSixteenDigits() {
        let output = OutputBuffer(capacity: 4)
        for (number, digits) in [(0, "0000000000000000"), (.max, "ffffffffffffffff"), (0x12ab, "00000000000012ab")]
            as [(UInt64, String)]
        {
            output.restart()
            output.append(requestID: number)
            #expect(text(output) == digits)
            #expect(Hex.encode(number) == digits)
        }
    }

    @Test(arguments: ["1.2.3.4", "255.255.255.255", "::", "2001:db8::1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8"])
    func addressesHaveTheirCanonicalText(address: String) throws {
        let output = OutputBuffer(capacity: 1)
        output.append(try #require(IPAddress(address)))
        #expect(text(output) == address)
    }

    @Test func keptPiecesSurviveGrowth() {
        let output = OutputBuffer(capacity: 3)
        var random = SeededNumbers(seed: 9)
        var pieces: [(range: Range<Int>, bytes: [UInt8])] = []
        for _ in 0..<100 {
            let bytes = (0..<(random.next() % 40)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            output.append([1, 2, 3])
            output.restart()
            for byte in bytes { output.append(byte: byte) }
            #expect(output.count == bytes.count)
            pieces.append((output.keep(), bytes))
        }
        #expect(output.keptCount == pieces.reduce(0) { $0 + $1.bytes.count })
        for piece in pieces { #expect(output.kept(piece.range).elementsEqual(piece.bytes)) }
        output.removeAll()
        #expect(output.keptCount == 0 && output.count == 0)
    }

    @Test func generatedIDsDoNotRepeat() {
        var generator = RequestIDGenerator()
        #expect(Set((0..<2_000).map { _ in generator.next() }).count == 2_000)
    }

    @Test(arguments: [
        ("a", true), ("A-z_0.9:x", true), (String(repeating: "x", count: 64), true), ("", false),
        (String(repeating: "x", count: 65), false), ("a b", false), ("a\"", false), ("é", false), ("a\n", false),
        ("a/b", false),
    ])
    func usableRequestIDsAreShortAndHarmless(id: String, isUsable: Bool) {
        #expect(Array(id.utf8).withUnsafeBytes { RequestID.isUsable($0) } == isUsable)
    }
}

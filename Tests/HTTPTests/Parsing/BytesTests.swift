import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("Bytes are compared by the rules of HTTP") struct BytesTests {
    private static let tokenCharacters = Set(
        "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)

    @Test func characterClassesAreThoseOfTheGrammar() {
        for byte in UInt8.min...UInt8.max {
            #expect(byte.isToken == Self.tokenCharacters.contains(byte))
            #expect(byte.isVisible == (0x21...0x7e).contains(byte))
            #expect(byte.isBlank == [0x20, 0x09].contains(byte))
            let character = byte < 0x80 ? Character(UnicodeScalar(byte)) : "é"
            #expect(byte.digit == (character.isWholeNumber ? character.wholeNumberValue : nil))
            #expect(byte.hexDigit.map { Int($0) } == (character.isHexDigit ? character.hexDigitValue : nil))
            #expect(byte.lowercased == (byte < 0x80 ? character.lowercased().utf8.first : byte))
        }
    }

    @Test func comparisonIgnoresTheCaseOfLettersOnly() {
        var random = SeededNumbers(seed: 2)
        func lower(_ bytes: [UInt8]) -> [UInt8] { bytes.map(\.lowercased) }
        for _ in 0..<600 {
            let count = Int(random.next() % 24)
            let left = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            var right = left.map { random.next() % 2 == 0 && $0.isToken && $0 >= 0x41 && $0 <= 0x7a ? $0 ^ 0x20 : $0 }
            if count > 0, random.next() % 2 == 0 {
                right[Int(random.next() % UInt64(count))] ^= UInt8(1 << (random.next() % 8))
            }
            left.withUnsafeBytes { a in
                right.withUnsafeBytes { b in
                    #expect(a.equalsIgnoringCase(b) == (lower(left) == lower(right)))
                    #expect(a.equals(b) == (left == right))
                }
            }
        }
    }

    @Test(arguments: [
        ("", ""), (" ", ""), ("\t \t", ""), ("a", "a"), (" a b\t", "a b"), ("\u{b}a", "\u{b}a"), ("\r\na", "\r\na"),
    ])
    func onlySpacesAndTabsAreTrimmed(text: String, trimmed: String) {
        Array(text.utf8).withUnsafeBytes { #expect(String(decoding: $0.trimmed, as: UTF8.self) == trimmed) }
    }

    @Test(
        arguments: [
            ("0", 0), ("007", 7), ("9223372036854775807", .max), ("9223372036854775808", nil), ("18446744073709551616", nil),
            ("00000000000000000000", nil), ("", nil), ("-1", nil), ("+1", nil), ("1 ", nil), ("1a", nil), ("٣", nil),
        ] as [(String, Int?)])
    func decimalNumbersFitIntoAnInteger(text: String, number: Int?) {
        Array(text.utf8).withUnsafeBytes { #expect($0.decimal == number) }
    }
}

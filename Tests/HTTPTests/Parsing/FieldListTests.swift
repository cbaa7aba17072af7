import TestSupport
import Testing

@testable import HTTP

@Suite("Lists and parameters are split by one rule of quoting") struct FieldListTests {
    private func elements(_ text: String, separator: UInt8 = UInt8(ascii: ","), hasEscapes: Bool = true) -> [String] {
        Array(text.utf8).withUnsafeBytes { bytes in
            FieldList(bytes, separator: separator, hasEscapes: hasEscapes).map { String(decoding: $0, as: UTF8.self) }
        }
    }

    @Test(
        arguments: [
            ("", []), (",", []), (" , ,", []), ("a", ["a"]), ("a,b", ["a", "b"]), (" a ,, b\t", ["a", "b"]),
            ("\"a,b\",c", ["\"a,b\"", "c"]), ("W/\"a\" , \"b\"", ["W/\"a\"", "\"b\""]),
            ("\"a\\\",b\",c", ["\"a\\\",b\"", "c"]), ("a\\,b", ["a\\", "b"]), ("\"a\\\\\",b", ["\"a\\\\\"", "b"]),
            ("\"a,b", ["\"a,b"]), ("a,\"b\\", ["a", "\"b\\"]), ("é,\u{ff}", ["é", "\u{ff}"]),
        ] as [(String, [String])])
    func elementsAreSeparatedByCommasOutsideQuotes(_ text: String, _ expected: [String]) {
        #expect(elements(text) == expected)
    }

    @Test func entityTagsHaveNoEscapes() {
        #expect(elements(#""a\", "b""#, hasEscapes: false) == [#""a\""#, "\"b\""])
        #expect(elements(#""a\", "b""#) == [#""a\", "b""#])
    }

    @Test(arguments: [("a,b", false), ("\"a\",b", false), ("a,\"b", true), ("\"a\\\"", true), ("", false)])
    func aQuotedStringWithoutAnEndIsNoticed(_ text: String, _ expected: Bool) {
        Array(text.utf8).withUnsafeBytes { bytes in
            var list = FieldList(bytes)
            while list.next() != nil {}
            #expect(list.isUnterminated == expected)
        }
    }

    @Test(
        arguments: [
            ("form-data; A=1;b=\"x;y\" ; c = z ;flag; A=2;=", "a", "1"), ("form-data;b=\"x;y\"", "B", "\"x;y\""),
            ("form-data; c = z ;d", "c", "z"), ("form-data;flag", "flag", nil), ("form-data;a=", "a", ""), ("a=1", "a", nil),
            ("", "a", nil), (";a=1", "a", "1"), ("x;b=\"a=1;a=2\";a=3", "a", "3"),
        ] as [(String, StaticString, String?)])
    func theFirstParameterOfANameCounts(_ text: String, _ name: StaticString, _ expected: String?) {
        Array(text.utf8).withUnsafeBytes { bytes in
            let value = FieldElement(bytes).parameter(name)
            #expect(value.map { String(decoding: $0, as: UTF8.self) } == expected)
        }
    }

    @Test(arguments: [("Form-Data ; a=1", "Form-Data"), (" x", "x"), (";a", ""), ("\"a;b\"", "\"a")])
    func theValueEndsAtTheFirstSemicolon(_ text: String, _ expected: String) {
        Array(text.utf8).withUnsafeBytes { bytes in
            #expect(String(decoding: FieldElement(bytes).value, as: UTF8.self) == expected)
        }
    }

    @Test(
        arguments: [
            ("a", "a"), ("", ""), ("\"\"", ""), ("\"a b\"", "a b"), ("\"a\\\"b\\\\c\\d\"", "a\"b\\cd"), ("\"a", nil),
            ("\"", nil), ("\"a\"b", nil), ("\"a\\\"", nil), ("\"a\\", nil), ("a\"b", "a\"b"),
        ] as [(String, String?)])
    func quotedStringsAreReadWithTheirEscapes(_ text: String, _ expected: String?) {
        Array(text.utf8).withUnsafeBytes { bytes in
            #expect(bytes.unquoted.map { String(decoding: $0, as: UTF8.self) } == expected)
        }
    }

    /// Whatever the bytes, each is in an element, a separator or a blank.
    @Test func noByteIsLostOrRepeated() {
        var random = SeededNumbers(seed: 9)
        let alphabet = Array("a,;\"\\ \t=".utf8)
        for _ in 0..<2_000 {
            let bytes = (0..<Int(random.next() % 24)).map { _ in alphabet[Int(random.next() % UInt64(alphabet.count))] }
            bytes.withUnsafeBytes { buffer in
                var end = buffer.baseAddress
                var list = FieldList(buffer)
                while let element = list.next() {
                    guard let start = element.baseAddress, let last = end else { return }
                    let gap = UnsafeRawBufferPointer(start: last, count: last.distance(to: start))
                    #expect(gap.allSatisfy { $0 == UInt8(ascii: ",") || $0.isBlank })
                    #expect(element.first.map { !$0.isBlank } == true)
                    end = start + element.count
                }
            }
        }
    }
}

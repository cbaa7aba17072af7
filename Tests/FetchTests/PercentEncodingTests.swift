import SystemIO
import TestSupport
import Testing

@testable import Fetch

@Suite("Percent-encoding round-trips values and normalizes paths and queries") struct PercentEncodingTests {
    @Test(arguments: [
        ("", ""), ("aZ09-._~", "aZ09-._~"), ("a b", "a%20b"), ("a/b?c=d&e", "a%2Fb%3Fc%3Dd%26e"), ("100%", "100%25"),
        ("+", "%2B"), ("é", "%C3%A9"), ("\0\n\u{7f}", "%00%0A%7F"), ("😀", "%F0%9F%98%80"),
    ])
    func everythingButUnreservedCharactersIsEncoded(text: String, encoded: String) {
        #expect(PercentEncoding.encode(text) == encoded)
        #expect(PercentEncoding.decode(encoded[...]) == text)
    }

    @Test func everyByteOfASCIIRoundTrips() {
        for byte in UInt8(0)...0x7f {
            let text = String(decoding: [byte], as: UTF8.self)
            let encoded = PercentEncoding.encode(text)
            #expect(encoded.utf8.count == 1 || encoded.utf8.count == 3)
            #expect(PercentEncoding.decode(encoded[...]) == text)
        }
    }

    @Test func randomTextRoundTrips() {
        var random = SeededNumbers(seed: 7)
        for _ in 0..<500 {
            let scalars = (0..<(random.next() % 12)).compactMap { _ in UnicodeScalar(UInt32(random.next() % 0x3000)) }
            let text = String(String.UnicodeScalarView(scalars))
            let encoded = PercentEncoding.encode(text)
            #expect(encoded.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
            #expect(PercentEncoding.decode(encoded[...]) == text)
        }
    }

    @Test(arguments: [("a%2fb", "a/b"), ("%2F%2f", "//"), ("a+b", "a+b"), ("é", "é"), ("%C3%A9", "é"), ("x?y", "x?y")])
    func valueIsDecoded(text: String, decoded: String) {
        #expect(PercentEncoding.decode(text[...]) == decoded)
    }

    @Test(arguments: ["%", "%4", "a%", "%zz", "%4z", "%z4", "%%41", "%+1", "%-1", "% 1", "%C3", "%FF", "%C3%28", "%ED%A0%80"])
    func malformedValueIsRefused(text: String) {
        #expect(PercentEncoding.decode(text[...]) == nil)
    }

    @Test func decodingTakesAPartOfAText() {
        let text = "%41=%42"
        #expect(text.split(separator: "=").map { PercentEncoding.decode($0) } == ["A", "B"])
    }

    @Test(arguments: [
        ("/", "/"), ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/a/..", "/"), ("/a/.", "/a/"), ("/../../a", "/a"),
        ("/a//../b", "/a/b"), ("/%2e%2E/a", "/a"), ("/%7eJoe", "/~Joe"), ("/%c3%a9", "/%C3%A9"), ("/%2f", "/%2F"),
        ("/100%", "/100%25"), ("/%4%44", "/%254D"), ("/a b\"<>", "/a%20b%22%3C%3E"), ("/...", "/..."), ("/.a/b.", "/.a/b."),
        ("/[x]", "/[x]"), ("/%5Bx%5D", "/%5Bx%5D"), ("/%25%34%31", "/%2541"),
    ])
    func pathHasItsNormalizedForm(path: String, normalized: String) {
        #expect(URLNormalization.normalizedPath(path) == normalized)
    }

    @Test(arguments: [
        ("a=b", "a=b"), ("%7e", "%7e"), ("%zz%", "%zz%"), ("a b", "a%20b"), ("é", "%C3%A9"), ("a=../b", "a=../b"),
        ("[]|^`", "[]%7C%5E%60"),
    ])
    func queryChangesOnlyWhereAByteIsForbidden(query: String, normalized: String) {
        #expect(URLNormalization.encodingForbiddenBytes(query.utf8) == normalized)
    }

    @Test func normalizationIsIdempotentAndKeepsTheMeaning() {
        var random = SeededNumbers(seed: 3)
        let pieces = ["/", "a", ".", "..", "%2e", "%2F", "%", "%4", "%25", "é", "%c3%a9", " ", "~", "%7E", "[", "|", "+", "\0"]
        for _ in 0..<3_000 {
            let text = "/" + (0..<(random.next() % 8)).map { _ in pieces[Int(random.next() % UInt64(pieces.count))] }.joined()
            let path = URLNormalization.normalizedPath(text)
            #expect(URLNormalization.normalizedPath(path) == path, "\(text)")
            #expect(path.hasPrefix("/") && path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }, "\(text)")
            let segments = path.split(separator: "/", omittingEmptySubsequences: false)
            #expect(!segments.contains(".") && !segments.contains(".."), "\(text)")
            let query = URLNormalization.encodingForbiddenBytes(text.utf8)
            #expect(URLNormalization.encodingForbiddenBytes(query.utf8) == query, "\(text)")
        }
    }
}

import Testing

@testable import HTTP

@Suite("Header fields are encoded") struct HTTPHeadersTests {
    @Test func fieldsKeepTheirOrderAndAreFoundInAnyCase() {
        var headers: HTTPHeaders = ["B": "1", "A": "2"]
        headers.append("b", "3")
        #expect(headers.description == "B: 1\r\nA: 2\r\nb: 3\r\n")
        #expect(headers["b"] == "1")
        #expect(headers["C"] == nil)
    }

    @Test func controlCharactersInValuesBecomeSpaces() {
        let headers: HTTPHeaders = ["Location": "/x\r\nSet-Cookie: a=b\0\u{7f}"]
        #expect(headers.description == "Location: /x  Set-Cookie: a=b  \r\n")
    }

    @Test func cacheStatusIsLocated() {
        var headers: HTTPHeaders = ["X": "y"]
        headers.append(["cache-status": "gifreel; hit"])
        #expect(String(decoding: headers.encoded[headers.cacheStatus], as: UTF8.self) == "gifreel; hit")
    }

    @Test func allowFieldListsMethods() {
        #expect([HTTPMethod.get, .head].allowValue == "GET, HEAD")
        #expect(HTTPResponse.options(allow: [.get, .other("X")]).headers["allow"] == "GET, X")
    }
}

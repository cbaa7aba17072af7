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

    @Test func theNumberOfAFieldIsSetWithoutTheOtherBytes() {
        var headers: HTTPHeaders = ["A": "1"]
        headers.append("Cache-Control", "max-age=", number: 60, ", public")
        headers.append("Cache-Status", "x; hit")
        var copy = headers
        copy.number = 12_345
        #expect(headers.description == "A: 1\r\nCache-Control: max-age=60, public\r\nCache-Status: x; hit\r\n")
        #expect(copy["Cache-Control"] == "max-age=12345, public" && copy["Cache-Status"] == "x; hit")
        #expect(copy.encoded == headers.encoded)
        let buffer = OutputBuffer(capacity: 8)
        buffer.append(copy)
        #expect(Array(buffer.bytes) == Array(copy.description.utf8))
    }

    @Test func theLastOfSeveralNumbersCanBeSet() {
        var headers: HTTPHeaders = ["A": "1"]
        headers.append("B", "x=", number: 5, "")
        headers.append("Cache-Status", "hit")
        var more: HTTPHeaders = ["C": "2"]
        more.append("D", "y=", number: 6, ";")
        headers.append(more)
        headers.number = 77
        #expect(headers.description == "A: 1\r\nB: x=5\r\nCache-Status: hit\r\nC: 2\r\nD: y=77;\r\n")
        #expect(String(decoding: headers.encoded[headers.cacheStatus], as: UTF8.self) == "hit")
    }
}

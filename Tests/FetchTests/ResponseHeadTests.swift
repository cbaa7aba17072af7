import HTTPClient
import Testing

@testable import Fetch

@Suite("Response heads are checked, and say how long a source is fresh") struct ResponseHeadTests {
    private func read(_ lines: String...) -> ResponseHead { read(lines) }

    private func read(_ lines: [String]) -> ResponseHead {
        var head = HTTPHead()
        for line in lines {
            let fault = Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0, maxSize: 1000) }
            #expect(fault == nil)
        }
        return ResponseHead(head)
    }

    @Test func fieldsOfTheFinalResponseAreRead() {
        let head = read(
            "HTTP/1.1 200 OK", "ETag: \"v1\"", "last-modified:  Sun, 06 Nov 1994 08:49:37 GMT ", "Content-Length: 42",
            "Cache-Control: public, max-age=60", "CACHE-CONTROL: no-store", "")
        #expect(head.fault == nil)
        #expect(head.status == 200)
        #expect(head.contentLength == 42)
        #expect(head.validators == SourceValidators(etag: "\"v1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(head.cacheDirectives.maxAge == 60)
        #expect(head.cacheDirectives.noStore)
    }

    @Test(arguments: [
        "Content-Length: -1", "Content-Length: 1x", "Content-Length:", "Content-Length: 9999999999999999999",
        "Content-Length: 1, 1",
    ])
    func contentLengthMustBeANumber(line: String) {
        #expect(read("HTTP/1.1 200 OK", line).fault != nil)
    }

    @Test func repeatedContentLengthsMustAgree() {
        #expect(read("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 5").fault == nil)
        #expect(read("HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 6").fault != nil)
    }

    @Test func theLengthOfAChunkedResponseIsUnknown() {
        #expect(read("HTTP/1.1 200 OK", "Content-Length: 5", "Transfer-Encoding: chunked").contentLength == nil)
        #expect(read("HTTP/1.1 200 OK", "Transfer-Encoding: identity", "Content-Length: 5").contentLength == 5)
    }

    @Test(arguments: ["gzip", "gzip, chunked", "chunked, gzip", "deflate", "x"])
    func transferCodingsOtherThanChunkedAreFaults(coding: String) {
        #expect(read("HTTP/1.1 200 OK", "Transfer-Encoding: \(coding)").fault != nil)
        #expect(read("HTTP/1.1 200 OK", "Transfer-Encoding: Chunked", "").fault == nil)
    }

    @Test(
        arguments: [
            (["Date: Thu, 01 Jan 1970 00:10:00 GMT", "Expires: Thu, 01 Jan 1970 00:20:00 GMT"], 600),
            (["Date: Thu, 01 Jan 1970 00:10:00 GMT", "Expires: Thu, 01 Jan 1970 00:05:00 GMT"], 0), (["Expires: 0"], 0),
            (["Date: Thu, 01 Jan 1970 00:10:00 GMT"], nil), (["Age: 10", "Cache-Control: max-age=30"], 20),
            (["Age: -10", "Cache-Control: max-age=30"], 30), (["Age: x", "Cache-Control: max-age=30"], 30),
            (["Age: 99999999999", "Cache-Control: max-age=30"], 0),
            (["Age: 99999999999999999999", "Cache-Control: max-age=30"], 0),
            // Only the first of several ages counts.
            (["Age: 10, 20", "Cache-Control: max-age=30"], 20), (["Age: 10 ,x", "Cache-Control: max-age=30"], 20),
            (["Age: 10", "Age: 20", "Cache-Control: max-age=30"], 20), (["Age: x, 20", "Cache-Control: max-age=30"], 30),
            (["Age: x", "Age: 20", "Cache-Control: max-age=30"], 30),
        ] as [([String], Int?)])
    func freshnessFollowsFromDateExpiresAndAge(fields: [String], freshFor: Int?) {
        #expect(read(["HTTP/1.1 200 OK"] + fields + [""]).cacheDirectives.freshFor == freshFor)
    }

    @Test func onlyTheFirstLocationCounts() {
        let head = read("HTTP/1.1 302 Found", "Location: /a", "Location: /b", "")
        #expect(head.location.map { String(decoding: $0, as: UTF8.self) } == "/a")
    }

    @Test(arguments: [("*", true), ("Accept, *", true), ("Accept", false), ("x*", false)])
    func aResponseThatVariesUnpredictablyIsValidatedBeforeEachUse(vary: String, isValidated: Bool) {
        let directives = read("HTTP/1.1 200 OK", "Cache-Control: max-age=600", "Vary: \(vary)", "").cacheDirectives
        #expect(directives.noCache == isValidated && directives.forbidsStale == isValidated)
        let plain = read("HTTP/1.1 200 OK", "Vary: \(vary)", "").cacheDirectives
        #expect(plain.noCache == isValidated && plain.isEmpty == !isValidated)
    }
}

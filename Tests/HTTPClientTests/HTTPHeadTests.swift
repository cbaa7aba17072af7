import Testing

@testable import HTTPClient

@Suite("Response heads are read line by line") struct HTTPHeadTests {
    /// Reads the lines; the fault is that of the last line.
    private func read(_ lines: String..., maxSize: Int = 1000) -> (head: HTTPHead, fault: String?) {
        var head = HTTPHead()
        var fault: String?
        for line in lines where fault == nil {
            fault = Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0, maxSize: maxSize) }
        }
        return (head, fault)
    }

    @Test func namesAreInLowerCaseAndValuesTrimmed() {
        let head = read("HTTP/1.1 200 OK", "ETag: \"v1\"", "X-A:  b c ", "x-a \t:d", "").head
        #expect(head.status == 200 && head.isComplete)
        #expect(head.fields.map(\.name) == ["etag", "x-a", "x-a"])
        #expect(head.text("etag") == "\"v1\"" && head.text("x-a") == "d" && head.text("b") == nil)
    }

    /// RFC 9112 section 5.2.
    @Test func foldedLinesContinueTheFieldBefore() {
        let head = read(
            "HTTP/1.1 200 OK", " X: no field", "Cache-Control: max-age=60,", "\tno-store", " ", "X-Note: see", "  ETag: \"x\"",
            "Location:", " /a.gif", ""
        ).head
        #expect(head.isComplete && head.fields.map(\.name) == ["cache-control", "x-note", "location"])
        #expect(head.text("cache-control") == "max-age=60, no-store" && head.text("location") == "/a.gif")
        #expect(head.text("x-note") == "see ETag: \"x\"")
    }

    @Test func interimResponsesAreSkipped() {
        let (head, fault) = read("HTTP/1.1 103 Early Hints", "ETag: \"early\"", "", "HTTP/2 404", "")
        #expect(fault == nil)
        #expect(head.status == 404)
        #expect(head.isComplete)
        #expect(head.fields.isEmpty)
    }

    @Test func headIsIncompleteAfterAnInterimResponse() {
        #expect(!read("HTTP/1.1 100 Continue", "").head.isComplete)
    }

    @Test func trailersAreIgnored() {
        let (head, _) = read("HTTP/1.1 200 OK", "", "ETag: \"late\"", "Content-Length: 1", "Content-Length: 2")
        #expect(head.fields.isEmpty)
    }

    @Test func sizeIsBoundedAcrossInterimResponses() {
        #expect(read("HTTP/1.1 100 Continue", "", "HTTP/1.1 100 Continue", "", maxSize: 50).fault == nil)
        #expect(read("HTTP/1.1 100 Continue", "", "HTTP/1.1 100 Continue", "", maxSize: 49).fault != nil)
    }

    @Test(
        arguments: [
            ("120", Duration.seconds(120)), ("999999", .seconds(86_400)), ("0", nil), ("-5", nil), ("soon", nil),
            ("Thu, 01 Jan 1970 00:20:00 GMT", .seconds(200)), ("Thu, 01 Jan 1970 00:10:00 GMT", nil),
        ] as [(String, Duration?)])
    func retryAfterIsSecondsOrADate(text: String, expected: Duration?) {
        #expect(read("HTTP/1.1 503 Busy", "Retry-After: \(text)", "").head.retryAfter(now: 1000) == expected)
    }

    @Test func statusIsRequired() {
        #expect(read("HTTP/1.1").fault != nil)
        #expect(read("HTTP/1.1 abc").fault != nil)
        #expect(read("HTTP/1.1 20").fault != nil)
    }
}

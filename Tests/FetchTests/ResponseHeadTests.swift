import Testing

@testable import Fetch

@Suite("Response heads are parsed line by line") struct ResponseHeadTests {
    /// Reads the lines; the fault is that of the last line.
    private func read(_ lines: String..., maxSize: Int = 1000) -> (head: ResponseHead, fault: String?) {
        var head = ResponseHead()
        var fault: String?
        for line in lines where fault == nil {
            fault = Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0, maxSize: maxSize) }
        }
        return (head, fault)
    }

    @Test func fieldsOfTheFinalResponseAreRead() {
        let (head, fault) = read(
            "HTTP/1.1 200 OK", "ETag: \"v1\"", "last-modified:  Sun, 06 Nov 1994 08:49:37 GMT ", "Content-Length: 42",
            "Cache-Control: public, max-age=60", "CACHE-CONTROL: no-store", "")
        #expect(fault == nil)
        #expect(head.isComplete)
        #expect(head.status == 200)
        #expect(head.contentLength == 42)
        #expect(head.validators == SourceValidators(etag: "\"v1\"", lastModified: "Sun, 06 Nov 1994 08:49:37 GMT"))
        #expect(head.cacheDirectives.maxAge == 60)
        #expect(head.cacheDirectives.noStore)
    }

    @Test func interimResponsesAreSkipped() {
        let (head, fault) = read("HTTP/1.1 103 Early Hints", "ETag: \"early\"", "", "HTTP/2 404", "")
        #expect(fault == nil)
        #expect(head.status == 404)
        #expect(head.isComplete)
        #expect(head.validators.isEmpty)
    }

    @Test func headIsIncompleteAfterAnInterimResponse() {
        #expect(!read("HTTP/1.1 100 Continue", "").head.isComplete)
    }

    @Test func trailersAreIgnored() {
        let (head, _) = read("HTTP/1.1 200 OK", "", "ETag: \"late\"", "Content-Length: 1", "Content-Length: 2")
        #expect(head.validators.isEmpty)
        #expect(head.contentLength == nil)
    }

    @Test func sizeIsBoundedAcrossInterimResponses() {
        #expect(read("HTTP/1.1 100 Continue", "", "HTTP/1.1 100 Continue", "", maxSize: 50).fault == nil)
        #expect(read("HTTP/1.1 100 Continue", "", "HTTP/1.1 100 Continue", "", maxSize: 49).fault != nil)
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
        var head = ResponseHead()
        for line in ["HTTP/1.1 200 OK"] + fields + [""] {
            let fault = Array((line + "\r\n").utf8).withUnsafeBytes { head.receive($0, maxSize: 1000) }
            #expect(fault == nil)
        }
        #expect(head.cacheDirectives.freshFor == freshFor)
    }

    @Test func onlyTheFirstLocationCounts() {
        let head = read("HTTP/1.1 302 Found", "Location: /a", "Location: /b", "").head
        #expect(head.location.map { String(decoding: $0, as: UTF8.self) } == "/a")
    }
}

@Suite("A stall meter measures the rate of a response in windows") struct StallMeterTests {
    private let start = ContinuousClock.now

    @Test func windowWithTooFewBytesIsAStall() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        for quarter in 1...4 {
            meter.receive(750)
            expect(meter.isStalled(at: start + .seconds(3) * quarter / 4, hasBegun: true), false)
        }
        // The window moves: what came in its first quarter is missing from the next one.
        meter.receive(749)
        expect(meter.isStalled(at: start + .milliseconds(3700), hasBegun: true), false)
        expect(meter.isStalled(at: start + .milliseconds(3750), hasBegun: true), true)
    }

    @Test func aResponseThatStopsIsAStallAfterOneWindow() {
        var meter = StallMeter(rate: 1000, window: .seconds(8))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        meter.receive(1_000_000)
        var now = start + .seconds(1)
        while !meter.isStalled(at: now, hasBegun: true) { now += .milliseconds(250) }
        #expect(now - start <= .seconds(11))
    }

    @Test func firstWindowBeginsWithTheResponse() {
        var meter = StallMeter(rate: 1000, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: false), false)
        expect(meter.isStalled(at: start + .seconds(9), hasBegun: false), false)
        for quarter in 0...3 {
            expect(meter.isStalled(at: start + .seconds(10) + .seconds(3) * quarter / 4, hasBegun: true), false)
        }
        expect(meter.isStalled(at: start + .seconds(13), hasBegun: true), true)
    }

    @Test func rateOfZeroTurnsTheMeterOff() {
        var meter = StallMeter(rate: 0, window: .seconds(3))
        expect(meter.isStalled(at: start, hasBegun: true), false)
        expect(meter.isStalled(at: start + .seconds(60), hasBegun: true), false)
    }
}

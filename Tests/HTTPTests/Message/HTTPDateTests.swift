import Glibc
import TestSupport
import Testing

@testable import HTTP

@Suite("Dates are formatted and parsed") struct HTTPDateTests {
    private static let now = 1_700_000_000

    @Test(arguments: [
        (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
        (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
        (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"),
    ])
    func dateRoundTrips(seconds: Int, text: String) {
        #expect(HTTPDate.format(seconds) == text)
        #expect(HTTPDate.parse(text, now: Self.now) == seconds)
    }

    @Test func obsoleteFormsAreParsed() {
        #expect(HTTPDate.parse("Sunday, 06-Nov-94 08:49:37 GMT", now: Self.now) == 784_111_777)
        #expect(HTTPDate.parse("Sun Nov  6 08:49:37 1994", now: Self.now) == 784_111_777)
        #expect(HTTPDate.parse("Sun Nov 06 08:49:37 1994", now: Self.now) == 784_111_777)
    }

    @Test func leapSecondIsTheFirstOneOfTheNextMinute() {
        #expect(HTTPDate.parse("Sat, 31 Dec 2016 23:59:60 GMT", now: Self.now) == 1_483_228_800)
    }

    @Test func twoDigitYearIsAtMostFiftyYearsAhead() {
        #expect(HTTPDate.parse("Friday, 01-Jan-60 00:00:00 GMT", now: Self.now) == 2_840_140_800)
        #expect(HTTPDate.parse("Friday, 01-Jan-80 00:00:00 GMT", now: Self.now) == 315_532_800)
        // In 2023, the year 73 is exactly 50 years ahead.
        #expect(HTTPDate.parse("Sunday, 01-Jan-73 00:00:00 GMT", now: Self.now) == 3_250_454_400)
        #expect(HTTPDate.parse("Tuesday, 01-Jan-74 00:00:00 GMT", now: Self.now) == 126_230_400)
    }

    @Test(arguments: [
        "", "yesterday", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT", "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nvo 1994 08:49:37 GMT",
        "Sun, -6 Nov 1994 08:49:37 GMT", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 94 08:49:37 GMT", ",", "Sun,",
        "Sun, 00 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-1994 08:49:37 GMT", "Sun Nov 6 08:49:37 94",
        "Sun, 06 Nov 1994 08:60:37 GMT", "Sun, 06 Nov 1994 08:49:61 GMT", "Sun, 06 Nov 1994 8:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 CET", "Sunday Nov 6 08:49:37 1994", "Sun Nov 6 08:49:37 1994 GMT",
    ])
    func malformedDateIsRefused(text: String) {
        #expect(HTTPDate.parse(text, now: Self.now) == nil)
    }

    @Test func randomDatesAreThoseOfTheSystem() {
        var random = SeededNumbers(seed: 1)
        for _ in 0..<300 {
            // Years 1601 to 9999.
            var seconds = time_t(random.next() % 265_000_000_000) - 11_644_473_600
            var parts = tm()
            gmtime_r(&seconds, &parts)
            var buffer = [CChar](repeating: 0, count: 64)
            strftime(&buffer, buffer.count, "%a, %d %b %Y %H:%M:%S GMT", &parts)
            let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            #expect(HTTPDate.format(seconds) == text)
            #expect(HTTPDate.parse(text, now: Self.now) == seconds)
        }
    }
}

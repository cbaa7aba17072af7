import TestSupport
import Testing

/// Requests about which RFC 9110 and 9112 leave no choice, or where nginx chose as Gifreel did. Each is raw bytes, so that it can be what
/// no client library sends.
@Suite(
    "Gifreel and nginx answer alike for the same bytes", .timeLimit(.minutes(10)), .serversWithOneFile,
    .enabled(if: NginxServer.isAvailable, "nginx is missing (apt-get install nginx-light)"))
struct NginxComparisonTests {
    /// A request, in which `{path}`, `{tag}` and `{date}` stand for the server's own.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        private let text: String
        /// The number of answers.
        let answers: Int

        init(_ name: String, _ text: String, answers: Int = 1) {
            testDescription = name
            self.text = text
            self.answers = answers
        }

        var hasNoBodies: Bool { text.hasPrefix("HEAD ") }

        func bytes(for server: ServersWithOneFile.Server) -> [UInt8] {
            let values = [("{path}", server.path), ("{tag}", server.tag), ("{date}", server.date)]
            return Array(values.reduce(text) { $0.replacing($1.0, with: $1.1) }.utf8)
        }
    }

    private static let get = "GET {path} HTTP/1.1\r\nHost: h\r\n"
    private static let head = "HEAD {path} HTTP/1.1\r\nHost: h\r\n"
    private static let post = "POST {path} HTTP/1.1\r\nHost: h\r\n"
    private static let long = String(repeating: "a", count: 40_000)

    private static let framing = [
        Case("plain", get + "\r\n"),
        Case("head", head + "\r\n"),
        Case("old version", "GET {path} HTTP/1.0\r\n\r\n"),
        Case("old version, keep-alive", "GET {path} HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        Case("old version, with host", "GET {path} HTTP/1.0\r\nHost: h\r\n\r\n"),
        Case("close", get + "Connection: close\r\n\r\n"),
        Case("close in other letters", get + "connection: CLOSE\r\n\r\n"),
        Case("absolute form", "GET http://h{path} HTTP/1.1\r\nHost: h\r\n\r\n"),
        Case("empty line before", "\r\n" + get + "\r\n"),
        Case("blanks around values", get + "Range:   bytes=0-3  \r\n\r\n"),
        Case("names in any case", "GET {path} HTTP/1.1\r\nhOsT: h\r\nrAnGe: bytes=0-3\r\n\r\n"),
        Case("not there", "GET /nothing-here HTTP/1.1\r\nHost: h\r\n\r\n"),
        Case("POST to a file", post + "Content-Length: 2\r\n\r\nab"),
        Case("POST in chunks to a file", post + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"),
        Case("two in one", get + "Range: bytes=0-0\r\n\r\n" + get + "Range: bytes=1-1\r\n\r\n", answers: 2),
    ]

    private static let ranges = [
        Case("first byte", get + "Range: bytes=0-0\r\n\r\n"),
        Case("first two", get + "Range: bytes=0-1\r\n\r\n"),
        Case("from the start", get + "Range: bytes=0-\r\n\r\n"),
        Case("from within", get + "Range: bytes=100-\r\n\r\n"),
        Case("last byte", get + "Range: bytes=-1\r\n\r\n"),
        Case("more than all at the end", get + "Range: bytes=-99999999\r\n\r\n"),
        Case("beyond the end", get + "Range: bytes=500-99999999\r\n\r\n"),
        Case("past the end", get + "Range: bytes=99999999-\r\n\r\n"),
        Case("nothing at the end", get + "Range: bytes=-0\r\n\r\n"),
        Case("another unit", get + "Range: lines=0-1\r\n\r\n"),
        Case("range of HEAD of all", head + "Range: lines=0-1\r\n\r\n"),
    ]

    private static let conditions = [
        Case("same tag", get + "If-None-Match: {tag}\r\n\r\n"),
        Case("same tag, weak", get + "If-None-Match: W/{tag}\r\n\r\n"),
        Case("tag in a list", get + "If-None-Match: \"a\", {tag}\r\n\r\n"),
        Case("any tag", get + "If-None-Match: *\r\n\r\n"),
        Case("other tag", get + "If-None-Match: \"a\"\r\n\r\n"),
        Case("tag beats date", get + "If-None-Match: \"a\"\r\nIf-Modified-Since: {date}\r\n\r\n"),
        Case("same tag, HEAD", head + "If-None-Match: {tag}\r\n\r\n"),
        Case("same date", get + "If-Modified-Since: {date}\r\n\r\n"),
        Case("older date", get + "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
        Case("later date", get + "If-Modified-Since: Sun, 06 Nov 2089 08:49:37 GMT\r\n\r\n"),
        Case("no date", get + "If-Modified-Since: yesterday\r\n\r\n"),
        Case("must match, does", get + "If-Match: {tag}\r\n\r\n"),
        Case("must match, does not", get + "If-Match: \"a\"\r\n\r\n"),
        Case("must match anything", get + "If-Match: *\r\n\r\n"),
        Case("must be unmodified, is not", get + "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
        Case("must be unmodified, is", get + "If-Unmodified-Since: {date}\r\n\r\n"),
        Case("range if the tag is the same", get + "Range: bytes=0-3\r\nIf-Range: {tag}\r\n\r\n"),
        Case("range if the tag is another", get + "Range: bytes=0-3\r\nIf-Range: \"a\"\r\n\r\n"),
        Case(
            "range if the date is another", get + "Range: bytes=0-3\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"),
        Case("same tag beats range", get + "Range: bytes=0-3\r\nIf-None-Match: {tag}\r\n\r\n"),
    ]

    private static let mistakes = [
        Case("no host", "GET {path} HTTP/1.1\r\n\r\n"),
        Case("two hosts", get + "Host: i\r\n\r\n"),
        Case("a later major version", "GET {path} HTTP/2.0\r\nHost: h\r\n\r\n"),
        Case("no version there is", "GET {path} HTTX/1.1\r\n\r\n"),
        Case("no method", " {path} HTTP/1.1\r\nHost: h\r\n\r\n"),
        Case("two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nab"),
        Case("length and chunks", post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        Case("no length", post + "Content-Length: two\r\n\r\n"),
        Case("negative length", post + "Content-Length: -2\r\n\r\n"),
        Case("target too long", "GET /" + long + " HTTP/1.1\r\nHost: h\r\n\r\n"),
    ]

    /// What is compared of an answer.
    private struct Answer: Equatable {
        let status: Int
        let range: String?
        /// Of answers that are no errors.
        var length: String?
        var digest: String?

        init(_ response: RawHTTPResponse) {
            status = response.status
            range = response["content-range"]
            guard status < 400 else { return }
            length = status == 304 ? nil : response["content-length"]
            digest = sha256(response.body)
        }
    }

    private struct Exchange: Equatable {
        var answers: [Answer] = []
        /// Whether a request after the last answer is answered; nil after an error, where a server may do either.
        var persists: Bool?
    }

    private func exchange(_ item: Case, with server: ServersWithOneFile.Server) throws -> Exchange {
        var client = try RawHTTPClient(port: server.port)
        try client.send(item.bytes(for: server))
        var exchange = Exchange()
        for _ in 0..<item.answers { exchange.answers.append(Answer(try client.readResponse(toHead: item.hasNoBodies))) }
        guard let last = exchange.answers.last, last.status < 400 else { return exchange }
        do throws(RawHTTPClient.Failure) {
            _ = try client.request("HEAD", server.path)
            exchange.persists = true
        } catch {
            // A server that says nothing does neither.
            if error.isSilence { throw error }
            exchange.persists = false
        }
        return exchange
    }

    @Test(arguments: framing + ranges + conditions + mistakes) func theAnswerIsThatOfNginx(_ item: Case) throws {
        let servers = try ServersWithOneFile.current
        let answered = try exchange(item, with: servers.gifreel)
        let expected = try exchange(item, with: servers.nginx)
        #expect(answered == expected)
    }
}

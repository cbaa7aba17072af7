import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A response has the fields and the framing of its status, body and request") struct ResponseWriterTests {
    /// A writer and one connection.
    private struct Fixture {
        let pair: SocketPair
        let writer: ResponseWriter
        var connection: Connection { pair.connection }

        init(_ handler: any HTTPHandler = StubHandler()) throws {
            pair = try SocketPair(sendBuffer: 1 << 20)
            writer = ResponseWriter(settings: loopSettings(handler: handler), clock: LoopClock(), recorder: nil)
            connection.exchange = Exchange(started: 1, generatedID: 7)
        }

        func write(
            _ response: HTTPResponse, _ field: String = "X: y", method: String = "GET", version: String = "1.1"
        ) throws -> ResponseWriter.Outcome {
            try withHead(field, method: method, version: version) { writer.write(connection, response, $0) }
        }

        /// The text of a response that is sent at once.
        func text(
            _ response: HTTPResponse, _ field: String = "X: y", method: String = "GET", version: String = "1.1"
        ) throws -> String {
            switch try write(response, field, method: method, version: version) {
            case .staged: writer.sendStaged { _, progress in #expect(progress == .done) }
            case .sent(let progress): #expect(progress == .done)
            case .streams: Issue.record("not a streamed body")
            }
            return String(decoding: pair.readAll(), as: UTF8.self)
        }
    }

    /// The lines of a head, without the date, and the body.
    private func parts(_ text: String) throws -> (lines: [String], body: String) {
        let end = try #require(text.firstRange(of: "\r\n\r\n"))
        let lines = text[..<end.lowerBound].split(separator: "\r\n").map(String.init)
        #expect(lines.count { $0.hasPrefix("Date: ") } == 1)
        return (lines.filter { !$0.hasPrefix("Date: ") }, String(text[end.upperBound...]))
    }

    private static let resource = HTTPResource(
        bytes: Array("0123456789".utf8), contentType: "text/plain", entityTag: "\"t\"", lastModified: 784_111_777,
        headers: ["Cache-Control": "no-cache"])

    @Test(arguments: [(200, true), (404, true), (204, false), (304, false)])
    func lengthIsGivenUnlessTheStatusHasNoBody(status: Int, hasBody: Bool) throws {
        for body in [HTTPResponse.Body.empty, .bytes(Array("abc".utf8))] {
            let (lines, text) = try parts(Fixture().text(HTTPResponse(status: status, body: body)))
            let length = if case .empty = body { 0 } else { 3 }
            #expect(lines.first == "HTTP/1.1 \(status) \(HTTPStatus.reason(status))")
            #expect(lines.contains("Content-Length: \(length)") == hasBody)
            #expect(text == (hasBody && length > 0 ? "abc" : ""))
        }
    }

    @Test func responseToHEADHasTheFieldsOfGETOnly() throws {
        for response in [HTTPResponse(status: 200, body: .bytes(Array("abc".utf8))), HTTPResponse(Self.resource)] {
            let get = try parts(Fixture().text(response))
            let head = try parts(Fixture().text(response, method: "HEAD"))
            #expect(head.lines == get.lines)
            #expect(!get.body.isEmpty && head.body.isEmpty)
        }
    }

    @Test func representationWithAnotherStatusIsSentWhole() throws {
        let response = HTTPResponse(status: 404, body: .resource(Self.resource))
        let (lines, body) = try parts(Fixture().text(response, "Range: bytes=0-1\r\nIf-None-Match: \"t\""))
        #expect(lines.first == "HTTP/1.1 404 Not Found")
        #expect(lines.contains("ETag: \"t\"") && lines.contains("Content-Length: 10"))
        #expect(body == "0123456789")
        // A method that does not select a part.
        let post = try parts(Fixture().text(HTTPResponse(Self.resource), "Range: bytes=0-1", method: "POST"))
        #expect(post.lines.first == "HTTP/1.1 200 OK" && post.body == "0123456789")
    }

    @Test func unchangedRepresentationHasItsValidatorsAndNoType() throws {
        let response = HTTPResponse(Self.resource, headers: ["Cache-Status": "c; hit"])
        let (lines, body) = try parts(Fixture().text(response, "If-None-Match: \"t\""))
        #expect(
            lines == [
                "HTTP/1.1 304 Not Modified", "ETag: \"t\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT",
                "Cache-Control: no-cache", "Cache-Status: c; hit", "X-Request-Id: 0000000000000007",
            ])
        #expect(body.isEmpty)
    }

    /// The clock of the machine may have been set back since the representation was made.
    @Test(arguments: ["X: y", "Range: bytes=0-1", "If-None-Match: \"t\""])
    func noModificationIsInTheFuture(_ field: String) throws {
        let resource = HTTPResource(
            bytes: Array("0123456789".utf8), contentType: "text/plain", entityTag: "\"t\"", lastModified: 4_000_000_000,
            headers: ["Cache-Control": "no-cache"])
        for method in ["GET", "HEAD", "POST"] {
            let lines = try Fixture().text(HTTPResponse(resource), field, method: method).split(separator: "\r\n")
            let dates = try ["Date: ", "Last-Modified: "].map { name in
                try #require(lines.first { $0.hasPrefix(name) }).dropFirst(name.count)
            }
            #expect(dates[0] == dates[1], "\(method)")
            #expect(lines.contains("ETag: \"t\"") && lines.contains("Cache-Control: no-cache"), "\(method)")
        }
    }

    @Test(arguments: [("If-Match: \"x\"", 412), ("Range: bytes=10-", 416)])
    func refusedSelectionKeepsTheFieldsOfTheResponse(field: String, status: Int) throws {
        let response = HTTPResponse(Self.resource, headers: ["Access-Control-Allow-Origin": "*"])
        let (lines, _) = try parts(Fixture().text(response, field))
        #expect(lines.first == "HTTP/1.1 \(status) \(HTTPStatus.reason(status))")
        #expect(lines.contains("Access-Control-Allow-Origin: *"))
        #expect(lines.contains("Content-Range: bytes */10") == (status == 416))
    }

    @Test(arguments: ["If-Match: \"x\"", "Range: bytes=10-"])
    func refusedSelectionHasTheCacheFieldsOfTheError(field: String) throws {
        let test = try Fixture(
            RefusingHandler { error in
                HTTPResponse(
                    status: error.status, headers: ["Cache-Control": "no-store", "Access-Control-Allow-Origin": "*"])
            })
        let response = HTTPResponse(
            Self.resource,
            headers: [
                "Cache-Control": "public, max-age=60", "CDN-Cache-Control": "max-age=60", "Cache-Tag": "a",
                "Surrogate-Key": "a",
                "Expires": "0", "Vary": "Accept", "Cache-Status": "c; hit", "Access-Control-Allow-Origin": "*",
            ])
        let (lines, _) = try parts(test.text(response, field))
        #expect(lines.filter { $0.hasPrefix("Cache-Control:") } == ["Cache-Control: no-store"])
        for name in ["CDN-Cache-Control", "Cache-Tag", "Surrogate-Key", "Expires"] {
            #expect(!lines.contains { $0.hasPrefix(name + ":") }, "\(name)")
        }
        #expect(lines.contains("Vary: Accept") && lines.contains("Cache-Status: c; hit"))
        #expect(lines.count { $0.hasPrefix("Access-Control-Allow-Origin:") } == 1)
    }

    @Test func connectionFieldFollowsVersionAndExchange() throws {
        func field(version: String, closes: Bool) throws -> String? {
            let test = try Fixture()
            test.connection.exchange.closes = closes
            let (lines, _) = try parts(test.text(HTTPResponse(status: 204), version: version))
            return lines.first { $0.hasPrefix("Connection: ") }
        }
        #expect(try field(version: "1.1", closes: false) == nil)
        #expect(try field(version: "1.0", closes: false) == "Connection: keep-alive")
        #expect(try field(version: "1.1", closes: true) == "Connection: close")
        #expect(try field(version: "1.0", closes: true) == "Connection: close")
    }

    @Test func idOfTheClientIsRepeatedIfNoneWasGenerated() throws {
        let test = try Fixture()
        test.connection.exchange.generatedID = 0
        let (lines, _) = try parts(test.text(HTTPResponse(status: 204), "X-Request-Id: mine"))
        #expect(lines.contains("X-Request-Id: mine"))
    }

    @Test func streamedBodyIsChunkedForHTTP11Only() throws {
        let response = HTTPResponse(status: 200, body: .stream { _ in })
        for (version, isChunked) in [("1.1", true), ("1.0", false)] {
            let test = try Fixture()
            guard case .streams = try test.write(response, version: version) else {
                Issue.record("not streamed")
                continue
            }
            #expect(test.connection.exchange.closes == !isChunked)
            #expect(test.connection.sendOutgoing() == .done)
            let (lines, _) = try parts(String(decoding: test.pair.readAll(), as: UTF8.self))
            #expect(lines.contains("Transfer-Encoding: chunked") == isChunked)
            #expect(lines.contains("Connection: close") == !isChunked)
            #expect(test.connection.stream != nil)
        }
    }

    @Test(arguments: [("HEAD", 200), ("GET", 304)]) func streamWithoutABodyIsNotProduced(method: String, status: Int) throws {
        let test = try Fixture()
        let (_, body) = try parts(test.text(HTTPResponse(status: status, body: .stream { _ in }), method: method))
        #expect(body.isEmpty && test.connection.stream == nil)
    }

    @Test func stagedResponsesAreSentInOrderAndNotToClosedConnections() throws {
        let settings = loopSettings()
        let writer = ResponseWriter(settings: settings, clock: LoopClock(), recorder: nil)
        let pairs = try (0..<4).map { _ in try SocketPair(sendBuffer: 1 << 20) }
        for (index, pair) in pairs.enumerated() {
            pair.connection.exchange = Exchange(started: 1, generatedID: UInt64(index))
            try withHead("X: y") { head in
                let response = HTTPResponse(status: 200, contentType: "text/plain", text: "body \(index)")
                guard case .staged = writer.write(pair.connection, response, head) else {
                    Issue.record("not staged")
                    return
                }
            }
            #expect(pair.connection.phase == .staged)
            #expect(pair.readAll().isEmpty)
        }
        pairs[1].connection.phase = .closed
        var sent: [ObjectIdentifier] = []
        writer.sendStaged { connection, progress in
            #expect(progress == .done)
            sent.append(ObjectIdentifier(connection))
        }
        #expect(sent == [0, 2, 3].map { ObjectIdentifier(pairs[$0].connection) })
        for (index, pair) in pairs.enumerated() {
            let text = String(decoding: pair.readAll(), as: UTF8.self)
            #expect(text.hasSuffix("\r\n\r\nbody \(index)") == (index != 1))
        }
        writer.sendStaged { _, _ in Issue.record("sent twice") }
    }

    @Test func manyStagedResponsesFillTheStage() throws {
        let writer = ResponseWriter(settings: loopSettings(), clock: LoopClock(), recorder: nil)
        let response = HTTPResponse(status: 200, contentType: "text/plain", text: String(repeating: "x", count: 4000))
        var pairs: [SocketPair] = []
        while !writer.isStageFull {
            let pair = try SocketPair(sendBuffer: 1 << 20)
            pairs.append(pair)
            try withHead("X: y") { _ = writer.write(pair.connection, response, $0) }
            try #require(pairs.count < 20)
        }
        #expect(pairs.count == 8)
        writer.sendStaged { _, _ in }
        #expect(!writer.isStageFull)
    }
}

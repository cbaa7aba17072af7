import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A response arrives complete however little the socket accepts at once") struct PartialWriteTests {
    private static let content = (0..<60_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }

    private static let small = HTTPResource(
        bytes: Array(content.prefix(20_000)), contentType: "video/mp4", entityTag: "\"s\"", lastModified: 1_600_000_000)

    private static func large() throws -> HTTPResource {
        HTTPResource(
            file: try temporaryFile(content), length: content.count, contentType: "video/mp4", entityTag: "\"l\"",
            lastModified: 1_600_000_000)
    }

    private static let fields = [
        "X: y", "Range: bytes=0-0", "Range: bytes=7-", "Range: bytes=1000-49999", "Range: bytes=-1",
        "Range: bytes=0-4999,7000-7000,-3000", "If-None-Match: \"s\", \"l\"", "If-Match: \"x\"", "Range: bytes=900000-",
    ]

    /// Writes a response, and reads it in pieces of random sizes.
    ///
    /// - Returns: The bytes that arrived, and whether the whole response was accepted at once.
    private func exchange(
        _ response: HTTPResponse, _ field: String, method: String, closes: Bool, isPipelined: Bool, sendBuffer: Int32?,
        random: inout SeededNumbers
    ) throws -> (bytes: [UInt8], isWhole: Bool) {
        let pair = try SocketPair(sendBuffer: sendBuffer)
        let connection = pair.connection
        connection.exchange = Exchange(started: 1, generatedID: 7, closes: closes)
        connection.hasPipelined = isPipelined
        let writer = ResponseWriter(settings: loopSettings(), clock: LoopClock(), recorder: nil)
        var progress = SendProgress.blocked
        try withHead(field, method: method) { head in
            switch writer.write(connection, response, head) {
            case .staged: writer.sendStaged { progress = $1 }
            case .sent(let sent): progress = sent
            case .streams: Issue.record("not a streamed body")
            }
        }
        let isWhole = progress == .done
        var bytes: [UInt8] = []
        while progress != .done {
            try #require(progress != .failed)
            bytes += pair.read(upTo: Int(1 + random.next() % 15_000))
            connection.budget = Int(1 + random.next() % 50_000)
            progress = connection.sendOutgoing()
        }
        bytes += pair.readAll()
        #expect(connection.exchange.sentBytes == bytes.count)
        #expect(connection.outgoing.isEmpty)
        return (bytes, isWhole)
    }

    /// Removes what differs from response to response: the boundary of parts and the date.
    private func normalized(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for (mark, count) in [("boundary=", 16), ("Date: ", 29)] {
            guard let found = bytes.firstRange(of: Array(mark.utf8)) else { continue }
            let value = Array(bytes[found.upperBound..<found.upperBound + count])
            while let range = bytes.firstRange(of: value) {
                bytes.replaceSubrange(range, with: repeatElement(UInt8(ascii: "#"), count: count))
            }
        }
        return bytes
    }

    @Test(arguments: fields) func bytesAreTheSameAsOnASocketThatAcceptsThemAtOnce(field: String) throws {
        var random = SeededNumbers(seed: UInt64(field.utf8.count))
        var interrupted = 0
        let text = HTTPResponse(status: 200, contentType: "text/plain", text: String(repeating: "text ", count: 4000))
        for response in [HTTPResponse(Self.small), HTTPResponse(try Self.large()), text] {
            for method in ["GET", "HEAD"] {
                for (closes, isPipelined) in [(false, false), (true, false), (false, true)] {
                    let whole = try exchange(
                        response, field, method: method, closes: closes, isPipelined: isPipelined, sendBuffer: 1 << 20,
                        random: &random)
                    let pieces = try exchange(
                        response, field, method: method, closes: closes, isPipelined: isPipelined, sendBuffer: 1,
                        random: &random)
                    #expect(normalized(pieces.bytes) == normalized(whole.bytes))
                    if !pieces.isWhole { interrupted += 1 }
                    let head = String(decoding: whole.bytes, as: UTF8.self)
                    #expect(head.contains("\r\nConnection: close\r\n") == closes)
                    if method == "HEAD" { #expect(whole.bytes.suffix(4) == Array("\r\n\r\n".utf8)[...]) }
                }
            }
        }
        // Without a body most responses fit into the smallest buffer.
        if field == "X: y" { #expect(interrupted >= 6) }
    }

    @Test func bodyFollowsItsHeadExactly() throws {
        var random = SeededNumbers(seed: 11)
        let resource = try Self.large()
        for _ in 0..<8 {
            let first = Int(random.next() % UInt64(Self.content.count))
            let last = first + Int(random.next() % UInt64(Self.content.count - first))
            let (bytes, _) = try exchange(
                HTTPResponse(resource), "Range: bytes=\(first)-\(last)", method: "GET", closes: false, isPipelined: false,
                sendBuffer: 1, random: &random)
            let end = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
            #expect(bytes[end.upperBound...].elementsEqual(Self.content[first...last]))
            let head = String(decoding: bytes[..<end.lowerBound], as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 206 Partial Content\r\n"))
            #expect(head.contains("\r\nContent-Range: bytes \(first)-\(last)/\(Self.content.count)\r\n"))
            #expect(head.contains("\r\nContent-Length: \(last - first + 1)\r\n"))
        }
    }

    @Test func brokenSocketFailsTheResponse() throws {
        let pair = try SocketPair()
        let connection = pair.connection
        connection.outgoing = [Segment([1, 2, 3])]
        #expect(connection.sendOutgoing() == .done)
        let missing = try temporaryFile([1, 2, 3])
        connection.outgoing = [.file(ServedFile(missing, length: 100), 0..<100)]
        #expect(connection.sendOutgoing() == .failed)
    }

    @Test func aFileThatIsTooShortIsReported() throws {
        let pair = try SocketPair()
        let connection = pair.connection
        let reports = Mutex(0)
        let file = ServedFile(try temporaryFile([1, 2, 3]), length: 100) { reports.withLock { $0 += 1 } }
        connection.outgoing = [.file(file, 0..<100)]
        #expect(connection.sendOutgoing() == .failed)
        #expect(reports.withLock { $0 } == 1)
    }

    @Test func segmentsBeyondTheBudgetWaitForTheNextTurn() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let connection = pair.connection
        connection.budget = 10
        connection.outgoing = [Segment([UInt8](repeating: 1, count: 100)), Segment([2, 3])]
        // A segment is sent as a whole, and the budget is checked before each.
        #expect(connection.sendOutgoing() == .outOfBudget)
        #expect(connection.outgoing.map(\.count) == [2])
        #expect(pair.readAll().count == 100)
        connection.budget = 10
        #expect(connection.sendOutgoing() == .done)
        #expect(pair.readAll() == [2, 3])
    }
}

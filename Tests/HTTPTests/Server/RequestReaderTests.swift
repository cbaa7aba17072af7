import TestSupport
import Testing

@testable import HTTP

@Suite("Any split of the bytes gives the same requests") struct RequestReaderTests {
    private struct Seen: Equatable {
        var requests: [String] = []
        var error: HTTPProtocolError?
    }

    private func reader(_ settings: LoopSettings) -> RequestReader {
        let timeouts = ConnectionTimeouts(settings: settings, clock: LoopClock())
        return RequestReader(parser: settings.parser, timeouts: timeouts, input: InputBuffer(capacity: 64 * 1024))
    }

    /// Serves the bytes that have arrived as the driver does.
    private func serve(_ reader: RequestReader, _ connection: Connection, _ seen: inout Seen) {
        while connection.phase == .reading {
            connection.budget = Connection.turnBudget
            switch reader.read(connection) {
            case .bytes(let bytes):
                reader.parse(bytes, of: connection) { head in
                    let fields = head.fields.map { String(decoding: head.bytes.slice($0.value), as: UTF8.self) }
                    let target = String(decoding: head.targetBytes, as: UTF8.self)
                    seen.requests.append("\(head.method) \(target) \(fields) \(connection.hasPipelined)")
                } refuse: { error, _ in
                    seen.error = error
                    connection.phase = .lingering
                }
                if !connection.isReadable { return }
            case .incomplete: continue
            case .nothing, .end: return
            }
        }
    }

    private func seen(_ pieces: [ArraySlice<UInt8>]) throws -> (seen: Seen, unread: [UInt8]) {
        let reader = reader(loopSettings())
        let pair = try SocketPair()
        var seen = Seen()
        for piece in pieces where pair.connection.phase == .reading {
            try pair.send(piece)
            serve(reader, pair.connection, &seen)
        }
        return (seen, pair.connection.unread)
    }

    /// Whether more bytes follow a request depends on the split, unlike everything else.
    private func withoutPipelining(_ seen: Seen) -> Seen {
        var seen = seen
        seen.requests = seen.requests.map { String($0.prefix { $0 != "]" }) }
        return seen
    }

    private static func stream(_ random: inout SeededNumbers) -> [UInt8] {
        func number(_ bound: UInt64) -> Int { Int(random.next() % bound) }
        var text = ""
        for index in 0..<(1 + number(6)) {
            text += ["", "", "", "\r\n"][number(4)]
            text +=
                "\(["GET", "HEAD", "OPTIONS", "PURGE"][number(4)]) /\(index)?\(String(repeating: "q", count: number(200))) HTTP/1.1\r\n"
            text += "Host: h\r\n"
            for field in 0..<number(5) {
                text += "X-\(field):\([" ", "", "\t "][number(3)])\(String(repeating: "v", count: number(90)))\r\n"
            }
            text += ["\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "\r\n", "Broken\r\n\r\n"][number(7)]
        }
        // Sometimes the last request is incomplete.
        return Array(text.utf8.prefix(text.utf8.count - [0, 0, number(20)][number(3)]))
    }

    @Test(arguments: 1...20) func randomSplitsGiveTheRequestsOfTheWhole(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let bytes = Self.stream(&random)
        let whole = try seen([bytes[...]])
        for _ in 0..<4 {
            var pieces: [ArraySlice<UInt8>] = []
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = min(rest.count, 1 + Int(random.next() % [3, 40, 600][Int(random.next() % 3)]))
                pieces.append(rest.prefix(count))
                rest = rest.dropFirst(count)
            }
            let split = try seen(pieces)
            #expect(withoutPipelining(split.seen) == withoutPipelining(whole.seen))
            if whole.seen.error == nil { #expect(split.unread == whole.unread) }
        }
    }

    @Test func everySplitIntoTwoGivesTheSameRequests() throws {
        let bytes = Array("\r\nGET /a HTTP/1.1\r\nHost: h\r\nX: y\r\n\r\nHEAD /b HTTP/1.0\r\n\r\nGET /c HTTP/1.1\r\nHo".utf8)
        let whole = try seen([bytes[...]])
        #expect(whole.seen.requests.count == 2)
        for cut in 1..<bytes.count {
            let split = try seen([bytes[..<cut], bytes[cut...]])
            #expect(withoutPipelining(split.seen) == withoutPipelining(whole.seen), "split at \(cut)")
            #expect(split.unread == whole.unread, "split at \(cut)")
        }
    }

    @Test(arguments: [["\r\n"], ["\r\n\r\n"], ["\r", "\n"], ["\r\n\r", "\n"], ["\r", "\n", "\r"]])
    func emptyLinesAfterARequestLeaveTheConnectionIdle(pieces: [String]) throws {
        let settings = loopSettings()
        let timeouts = ConnectionTimeouts(settings: settings, clock: LoopClock())
        let reader = RequestReader(parser: settings.parser, timeouts: timeouts, input: InputBuffer(capacity: 64 * 1024))
        let pair = try SocketPair()
        // The connection has sent a response.
        pair.connection.sentBytes = 1
        timeouts.becomeIdle(pair.connection)
        let deadline = pair.connection.deadline
        var seen = Seen()
        for piece in pieces {
            try pair.send(Array(piece.utf8))
            serve(reader, pair.connection, &seen)
        }
        #expect(pair.connection.isIdle && !pair.connection.isWithinHead)
        #expect(pair.connection.deadline == deadline)
        let end = pieces.last == "\r" ? "\n" : ""
        try pair.send(Array("\(end)GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
        serve(reader, pair.connection, &seen)
        #expect(seen.requests.count == 1 && seen.error == nil)
    }

    @Test func emptyLinesUseUpTheTurn() throws {
        let reader = reader(loopSettings())
        let pair = try SocketPair()
        var seen = Seen()
        try pair.send(Array(String(repeating: "\r\n", count: 1000).utf8))
        serve(reader, pair.connection, &seen)
        #expect(pair.connection.isIdle)
        #expect(pair.connection.budget == Connection.turnBudget - 2000)
    }

    @Test func requestsBeyondTheBudgetStayUnread() throws {
        let settings = loopSettings()
        let reader = reader(settings)
        let pair = try SocketPair()
        let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        try pair.send((0..<100).flatMap { _ in request })
        pair.connection.budget = Connection.turnBudget
        guard case .bytes(let bytes) = reader.read(pair.connection) else {
            Issue.record("nothing was read")
            return
        }
        var count = 0
        reader.parse(bytes, of: pair.connection) { _ in
            count += 1
        } refuse: { error, _ in
            Issue.record(error)
        }
        #expect(count == 64)
        #expect(pair.connection.unread.count == 36 * request.count)
        #expect(pair.connection.budget <= 0)
    }

    @Test func readAheadKeepsTheBytesOfEachConnectionApart() throws {
        let reader = reader(loopSettings())
        let pairs = try (0..<8).map { _ in try SocketPair() }
        for (index, pair) in pairs.enumerated() {
            try pair.send(Array("GET /\(index) HTTP/1.1\r\nHost: h\r\n\r\n".utf8))
            #expect(!reader.isFull)
            #expect(reader.readAhead(pair.connection))
        }
        #expect(!reader.hasNoArrivals)
        var targets: [String] = []
        reader.drainArrivals { connection, bytes in
            connection.budget = Connection.turnBudget
            #expect(connection === pairs[targets.count].connection)
            reader.parse(bytes, of: connection) { head in
                targets.append(String(decoding: head.targetBytes, as: UTF8.self))
            } refuse: { error, _ in
                Issue.record(error)
            }
        }
        #expect(targets == (0..<8).map { "/\($0)" })
        #expect(reader.hasNoArrivals)
    }

    @Test func readAheadEndsWithTheClient() throws {
        let reader = reader(loopSettings())
        let pair = try SocketPair()
        #expect(reader.readAhead(pair.connection))
        pair.finishSending()
        #expect(!reader.readAhead(pair.connection))
    }
}

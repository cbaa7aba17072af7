import TestSupport
import Testing

@testable import HTTP

@Suite("A body reaches its sink whatever its framing and its split") struct BodyReceiverTests {
    private final class Sink: HTTPBodySink {
        struct Full: Error {}

        let limit: Int
        private let capacity: Int
        private(set) var bytes: [UInt8] = []
        private(set) var writes = 0
        private(set) var isAborted = false

        init(limit: Int = 1 << 20, capacity: Int = .max) {
            self.limit = limit
            self.capacity = capacity
        }

        func write(_ piece: UnsafeRawBufferPointer) throws {
            writes += 1
            bytes.append(contentsOf: piece)
            if bytes.count > capacity { throw Full() }
        }

        func finish() -> HTTPReply { .now(HTTPResponse(status: 204)) }
        func abort() { isAborted = true }
    }

    private struct Receiver {
        let pair: SocketPair
        let receiver: BodyReceiver
        var connection: Connection { pair.connection }

        init(_ change: (inout HTTPServerConfiguration) -> Void = { _ in }) throws {
            pair = try SocketPair(sendBuffer: 1 << 20)
            let (settings, clock) = (loopSettings(change), LoopClock())
            receiver = BodyReceiver(
                settings: settings, clock: clock, timeouts: ConnectionTimeouts(settings: settings, clock: clock),
                input: InputBuffer(capacity: 4096))
        }

        /// Starts to receive a body with this field.
        func start(_ sink: Sink, _ field: String) throws -> BodyReceiver.Start {
            try withHead(field, method: "POST") { head in
                connection.body = head.framing == .none ? nil : BodyDecoder(head.framing)
                connection.exchange.awaitsContinue = head.expectsContinue
                return receiver.start(connection, sink, head)
            }
        }
    }

    private func encoded(_ body: [UInt8], inChunks: Bool, _ random: inout SeededNumbers) -> (field: String, bytes: [UInt8]) {
        guard inChunks else { return ("Content-Length: \(body.count)", body) }
        var bytes: [UInt8] = []
        var rest = body[...]
        while !rest.isEmpty {
            let piece = rest.prefix(1 + Int(random.next() % 700))
            let extensions = ["", ";a=b", ";q=\"x y\""][Int(random.next() % 3)]
            bytes += Array("\(String(piece.count, radix: 16))\(extensions)\r\n".utf8) + piece + [13, 10]
            rest = rest.dropFirst(piece.count)
        }
        return ("Transfer-Encoding: chunked", bytes + Array(["0\r\n\r\n", "0\r\nT: u\r\n\r\n"][Int(random.next() % 2)].utf8))
    }

    @Test(arguments: 1...16) func randomSplitsDeliverTheBodyAndKeepWhatFollows(seed: UInt64) throws {
        var random = SeededNumbers(seed: seed)
        let body = (0..<(1 + random.next() % 5000)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let (field, bytes) = encoded(body, inChunks: seed % 2 == 0, &random)
        let next = Array("GET /next HTTP/1.1\r\n".utf8)
        let test = try Receiver()
        let sink = Sink()
        guard case .receiving = try test.start(sink, field) else {
            Issue.record("not started")
            return
        }
        var rest = (bytes + next)[...]
        var isComplete = false
        while !isComplete {
            let piece = rest.prefix(1 + Int(random.next() % 3000))
            try #require(!piece.isEmpty)
            try test.pair.send(piece)
            rest = rest.dropFirst(piece.count)
            steps: while true {
                switch test.receiver.receive(test.connection) {
                case .progress: continue
                case .nothing: break steps
                case .complete:
                    isComplete = true
                    break steps
                case .end, .failed:
                    Issue.record("the reception ended")
                    return
                }
            }
        }
        #expect(sink.bytes == body)
        #expect(!sink.isAborted)
        #expect(test.connection.unread.elementsEqual(next.prefix(test.connection.unread.count)))
        #expect(test.connection.hasPipelined == !test.connection.unread.isEmpty)
        #expect(test.receiver.finish(test.connection) === sink)
        #expect(test.connection.phase == .reading && test.connection.body == nil && test.connection.reception == nil)
    }

    @Test func requestWithoutABodyIsNotReceived() throws {
        let test = try Receiver()
        guard case .withoutBody = try test.start(Sink(), "X: y") else {
            Issue.record("received")
            return
        }
        #expect(test.connection.phase == .reading)
    }

    @Test(arguments: [(10, 1 << 20, 11), (1 << 20, 10, 11)])
    func declaredLengthOverEitherLimitIsRefusedAtOnce(sinkLimit: Int, serverLimit: Int, length: Int) throws {
        let test = try Receiver { $0.maxBodyBytes = serverLimit }
        let sink = Sink(limit: sinkLimit)
        guard case .tooLarge = try test.start(sink, "Content-Length: \(length)") else {
            Issue.record("not refused")
            return
        }
        #expect(sink.isAborted)
    }

    @Test(arguments: ["Content-Length: 5\r\n\r\nabcde", "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n"])
    func bodyOfExactlyTheLimitIsReceived(text: String) throws {
        let test = try Receiver { $0.maxBodyBytes = 5 }
        let sink = Sink(limit: 5)
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        guard case .receiving = try test.start(sink, String(parts[0])) else {
            Issue.record("not started")
            return
        }
        try test.pair.send(Array(parts[1].utf8))
        guard case .complete = test.receiver.receive(test.connection) else {
            Issue.record("not complete")
            return
        }
        #expect(sink.bytes == Array("abcde".utf8))
    }

    @Test func bytesOfABodyUseUpTheTurn() throws {
        let test = try Receiver()
        _ = try test.start(Sink(), "Content-Length: 3000")
        try test.pair.send([UInt8](repeating: 1, count: 2000))
        let before = test.connection.budget
        guard case .progress = test.receiver.receive(test.connection) else {
            Issue.record("no progress")
            return
        }
        #expect(test.connection.budget == before - 2000)
    }

    @Test func chunksOverTheLimitFail() throws {
        let test = try Receiver()
        let sink = Sink(limit: 5)
        _ = try test.start(sink, "Transfer-Encoding: chunked")
        try test.pair.send(Array("6\r\nabcdef\r\n".utf8))
        guard case .failed(let error as HTTPProtocolError) = test.receiver.receive(test.connection) else {
            Issue.record("not failed")
            return
        }
        #expect(error == .contentTooLarge)
        #expect(sink.isAborted && sink.bytes.isEmpty)
        #expect(test.connection.hasUnusableInput)
    }

    @Test func allChunksOfOneReadReachTheSinkTogether() throws {
        let test = try Receiver()
        let sink = Sink()
        _ = try test.start(sink, "Transfer-Encoding: chunked")
        let body = (0..<500).map { UInt8(truncatingIfNeeded: $0) }
        for half in [body.prefix(250), body.suffix(250)] {
            try test.pair.send(half.flatMap { Array("1\r\n".utf8) + [$0, 13, 10] })
            guard case .progress = test.receiver.receive(test.connection) else {
                Issue.record("no progress")
                return
            }
        }
        #expect(sink.bytes == body)
        #expect(sink.writes == 2)
        try test.pair.send(Array("0\r\n\r\n".utf8))
        guard case .complete = test.receiver.receive(test.connection) else {
            Issue.record("not complete")
            return
        }
        #expect(sink.writes == 2)
    }

    @Test func errorOfTheSinkEndsTheReception() throws {
        let test = try Receiver()
        let sink = Sink(capacity: 2)
        _ = try test.start(sink, "Content-Length: 10")
        try test.pair.send(Array("abc".utf8))
        guard case .failed(is Sink.Full) = test.receiver.receive(test.connection) else {
            Issue.record("not failed")
            return
        }
        #expect(sink.isAborted)
        #expect(test.receiver.finish(test.connection) == nil)
    }

    @Test func clientThatWaitsFor100GetsItOnce() throws {
        let test = try Receiver()
        _ = try test.start(Sink(), "Expect: 100-continue\r\nContent-Length: 3")
        #expect(test.pair.readAll() == Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
        #expect(!test.connection.exchange.awaitsContinue)
    }

    @Test func clientThatWaitsFor100BehindAFullSendBufferIsKept() throws {
        let test = try Receiver()
        test.connection.outgoing = [Segment([UInt8](repeating: 1, count: 8 << 20))]
        #expect(test.connection.sendOutgoing() == .blocked)
        test.connection.outgoing = []
        guard case .receiving = try test.start(Sink(), "Expect: 100-continue\r\nContent-Length: 3") else {
            Issue.record("not started")
            return
        }
        #expect(!test.connection.isWritable)
        #expect(test.pair.readAll().allSatisfy { $0 == 1 })
    }

    @Test func clientThatLeavesEndsTheReception() throws {
        let test = try Receiver()
        _ = try test.start(Sink(), "Content-Length: 10")
        try test.pair.send(Array("abc".utf8))
        test.pair.finishSending()
        test.connection.peerHasClosed = true
        guard case .progress = test.receiver.receive(test.connection), case .end = test.receiver.receive(test.connection) else {
            Issue.record("not ended")
            return
        }
    }

    @Test(arguments: ["Content-Length: 5\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"])
    func unwantedBodyIsDiscardedUpToTheNextRequest(text: String) throws {
        let test = try Receiver()
        let parts = text.split(separator: "\r\n\r\n", maxSplits: 1)
        try withHead(String(parts[0]), method: "POST") { test.connection.body = BodyDecoder($0.framing) }
        test.receiver.startDiscarding(test.connection)
        try test.pair.send(Array(text.utf8.dropFirst(parts[0].utf8.count + 4)) + Array("GET".utf8))
        guard case .complete = test.receiver.discard(test.connection) else {
            Issue.record("not complete")
            return
        }
        #expect(test.connection.unread == Array("GET".utf8))
        #expect(test.connection.body == nil && test.connection.phase == .reading)
    }

    @Test func unwantedChunksUpToTheLimitAreDiscarded() throws {
        let test = try Receiver { $0.maxDiscardedBytes = 100 }
        test.connection.body = BodyDecoder(.chunked)
        test.receiver.startDiscarding(test.connection)
        #expect(test.connection.phase == .discarding)
        try test.pair.send(Array("64\r\n".utf8) + [UInt8](repeating: 0, count: 100) + Array("\r\n0\r\n\r\n".utf8))
        guard case .complete = test.receiver.discard(test.connection) else {
            Issue.record("not complete")
            return
        }
        #expect(test.connection.discarded == 100)
    }

    @Test func malformedUnwantedBodyCannotBeDiscarded() throws {
        let test = try Receiver()
        test.connection.body = BodyDecoder(.chunked)
        test.receiver.startDiscarding(test.connection)
        guard case .nothing = test.receiver.discard(test.connection) else {
            Issue.record("something")
            return
        }
        try test.pair.send(Array("x\r\n".utf8))
        guard case .failed(HTTPProtocolError.malformedChunk) = test.receiver.discard(test.connection) else {
            Issue.record("not failed")
            return
        }
    }

    @Test func discardingIsLimited() throws {
        let test = try Receiver { $0.maxDiscardedBytes = 100 }
        test.connection.body = BodyDecoder(.sized(101))
        #expect(!test.receiver.canDiscardRest(test.connection))
        test.connection.body = BodyDecoder(.sized(100))
        #expect(test.receiver.canDiscardRest(test.connection))
        test.connection.exchange.awaitsContinue = true
        #expect(!test.receiver.canDiscardRest(test.connection))
        test.connection.body = BodyDecoder(.chunked)
        test.receiver.startDiscarding(test.connection)
        try test.pair.send(Array("65\r\n".utf8) + [UInt8](repeating: 0, count: 101))
        guard case .failed = test.receiver.discard(test.connection) else {
            Issue.record("not limited")
            return
        }
    }
}

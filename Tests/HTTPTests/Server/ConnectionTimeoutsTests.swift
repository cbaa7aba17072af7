import Testing

@testable import HTTP

@Suite("Deadlines follow the phase of a connection") struct ConnectionTimeoutsTests {
    private static let second: UInt64 = 1_000_000_000

    private let clock = LoopClock()

    private func timeouts(_ change: (inout HTTPServerConfiguration) -> Void = { _ in }) -> ConnectionTimeouts {
        let settings = loopSettings {
            $0.headTimeout = .seconds(3)
            $0.idleTimeout = .seconds(5)
            $0.bodyRateWindow = .seconds(2)
            $0.minBodyRate = 100
            $0.looksUpLocalPeers = false
            change(&$0)
        }
        return ConnectionTimeouts(settings: settings, clock: clock)
    }

    private func receive(_ connection: Connection, count: Int, until deadline: UInt64 = .max) {
        final class Sink: HTTPBodySink {
            let limit = Int.max
            func write(_ bytes: UnsafeRawBufferPointer) {}
            func finish() -> HTTPReply { .now(HTTPResponse(status: 204)) }
            func abort() {}
        }
        connection.phase = .receiving
        connection.reception = Reception(sink: Sink(), limit: .max, deadline: deadline, count: count)
    }

    @Test func everyWaitHasItsDeadline() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        timeouts.becomeIdle(connection)
        #expect(connection.deadline == clock.now + 5 * Self.second)
        #expect(connection.idleSince == clock.now && !connection.isWithinHead)
        timeouts.awaitHead(connection)
        #expect(connection.deadline == clock.now + 3 * Self.second && connection.isWithinHead)
        timeouts.linger(connection)
        #expect(connection.deadline == clock.now + 3 * Self.second)
        timeouts.awaitDiscardedBody(connection)
        #expect(connection.deadline == clock.now + 3 * Self.second)
    }

    @Test func inputAfterTheLastResponseExtendsTheWaitUpToALimit() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        timeouts.linger(connection)
        connection.deadline = 0
        timeouts.continueLingering(connection)
        #expect(connection.deadline == clock.now + 3 * Self.second)
        connection.windowStart = clock.now - 28 * Self.second
        timeouts.continueLingering(connection)
        #expect(connection.deadline == clock.now + 2 * Self.second)
        connection.isRefused = true
        connection.windowStart = clock.now
        timeouts.continueLingering(connection)
        #expect(connection.deadline == clock.now + 2 * Self.second)
    }

    @Test func silentConnectionIsClosedAndIncompleteHeadTimesOut() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        #expect(timeouts.judge(connection) == .close)
        // A CR may begin an empty line.
        connection.unread = [13]
        #expect(timeouts.judge(connection) == .close)
        connection.unread = [1]
        #expect(timeouts.judge(connection) == .timedOut)
        #expect(connection.deadline == .max)
    }

    @Test(arguments: [(200, true), (199, false), (100_000, true), (0, false)])
    func bodyMustArriveAtTheMinimumRate(count: Int, continues: Bool) throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        receive(connection, count: 1000)
        timeouts.watchReceiving(connection)
        #expect(connection.deadline == clock.now + 2 * Self.second)
        receive(connection, count: 1000 + count)
        #expect(timeouts.judge(connection) == (continues ? .continue : .timedOut))
        if continues {
            // The next window is measured from here.
            #expect(connection.deadline == clock.now + 2 * Self.second)
            #expect(timeouts.judge(connection) == .timedOut)
        }
    }

    @Test func wholeBodyHasADeadlineAtAnyRate() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        receive(connection, count: 0, until: clock.now + Self.second)
        timeouts.watchReceiving(connection)
        #expect(connection.deadline == clock.now + Self.second)
        receive(connection, count: 1 << 20, until: clock.now)
        #expect(timeouts.judge(connection) == .timedOut)
    }

    @Test func withoutAMinimumRateNoWindowIsMeasured() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts { $0.minBodyRate = 0 }
        receive(connection, count: 0)
        timeouts.watchReceiving(connection)
        #expect(connection.deadline == .max)
        #expect(timeouts.judge(connection) == .continue)
    }

    @Test func clientThatAcceptsTooFewBytesIsReset() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts()
        pair.connection.phase = .sending
        pair.connection.sentBytes = 0
        timeouts.watchSending(pair.connection)
        #expect(timeouts.judge(pair.connection) == .reset)
        pair.connection.sentBytes = 200
        #expect(timeouts.judge(pair.connection) == .continue)
    }

    /// Moves the start of a connection's window back, as if time had passed.
    private func pass(_ seconds: UInt64, _ connection: Connection) {
        connection.windowStart -= seconds * Self.second
        if connection.deadline != .max { connection.deadline -= seconds * Self.second }
    }

    @Test func clientAtTheMinimumRateIsResetAfterTheTimeOfAResponse() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts { $0.responseTimeout = .seconds(5) }
        pair.connection.phase = .sending
        pair.connection.exchange.timeToSend = 5 * Self.second
        timeouts.watchSending(pair.connection)
        for _ in 0..<2 {
            #expect(pair.connection.deadline == clock.now + 2 * Self.second)
            pass(2, pair.connection)
            pair.connection.sentBytes += 200
            #expect(timeouts.judge(pair.connection) == .continue)
        }
        // 400 bytes add 24 ms to the last second.
        #expect(pair.connection.deadline - clock.now > Self.second && pair.connection.deadline - clock.now < 1_100_000_000)
        pass(2, pair.connection)
        #expect(timeouts.judge(pair.connection) == .reset)
    }

    @Test func bytesThatArriveProlongTheTimeOfAResponse() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts { $0.responseTimeout = .seconds(5) }
        pair.connection.phase = .sending
        pair.connection.exchange.timeToSend = 5 * Self.second
        timeouts.watchSending(pair.connection)
        for _ in 0..<20 {
            pass(2, pair.connection)
            pair.connection.sentBytes += 2 * HTTPServerConfiguration.responseBytesPerSecond
            #expect(timeouts.judge(pair.connection) == .continue)
        }
        // Time that is not used is not saved.
        #expect(pair.connection.exchange.timeToSend <= 5 * Self.second)
    }

    @Test func timeInWhichAStreamedBodyIsProducedDoesNotCount() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts { $0.responseTimeout = .seconds(5) }
        pair.connection.phase = .sending
        pair.connection.exchange.timeToSend = 5 * Self.second
        timeouts.watchSending(pair.connection)
        pass(1, pair.connection)
        timeouts.endSending(pair.connection)
        #expect(pair.connection.deadline == .max && pair.connection.exchange.timeToSend == 4 * Self.second)
        pass(100, pair.connection)
        timeouts.watchSending(pair.connection)
        #expect(pair.connection.exchange.timeToSend == 4 * Self.second)
    }

    @Test func bytesBeforeTheWindowDoNotCountForItsRate() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts()
        pair.connection.phase = .sending
        pair.connection.sentBytes = 500
        timeouts.watchSending(pair.connection)
        pair.connection.sentBytes = 699
        #expect(timeouts.judge(pair.connection) == .reset)
        timeouts.watchSending(pair.connection)
        pair.connection.sentBytes = 899
        #expect(timeouts.judge(pair.connection) == .continue)
        #expect(pair.connection.deadline == clock.now + 2 * Self.second)
    }

    @Test func bytesThatTheClientHasNotAcknowledgedDoNotCount() throws {
        let pair = try SocketPair(sendBuffer: 1 << 20)
        let timeouts = timeouts()
        pair.connection.phase = .sending
        timeouts.watchSending(pair.connection)
        pair.connection.outgoing = [Segment([UInt8](repeating: 1, count: 10_000))]
        #expect(pair.connection.sendOutgoing() == .done)
        #expect(timeouts.judge(pair.connection) == .reset)
        #expect(pair.readAll().count == 10_000)
        #expect(timeouts.judge(pair.connection) == .continue)
    }

    @Test func clientOfAStreamedBodyIsNotProbed() throws {
        let pair = try SocketPair()
        let timeouts = timeouts()
        pair.connection.phase = .streaming
        pair.connection.exchange.allowsInterim = true
        #expect(!timeouts.hasLeft(pair.connection))
        #expect(timeouts.judge(pair.connection) == .continue)
        // An interim response within the body would corrupt it.
        #expect(pair.readAll().isEmpty)
        #expect(pair.connection.deadline > clock.now)
    }

    @Test func phasesThatOnlyReadAreClosed() throws {
        let connection = try SocketPair().connection
        let timeouts = timeouts()
        for (phase, verdict) in [
            (Connection.Phase.discarding, ConnectionTimeouts.Verdict.close), (.lingering, .close), (.staged, .continue),
            (.closed, .continue),
        ] {
            connection.phase = phase
            #expect(timeouts.judge(connection) == verdict)
        }
    }

    @Test func halfClosedClientIsProbedAtDoublingIntervals() throws {
        let pair = try SocketPair()
        let timeouts = timeouts()
        pair.connection.phase = .waiting
        pair.connection.exchange.allowsInterim = true
        #expect(!timeouts.hasLeft(pair.connection))
        #expect(pair.readAll().isEmpty)
        var intervals = [(pair.connection.deadline - clock.now) / Self.second]
        for _ in 0..<6 {
            #expect(timeouts.judge(pair.connection) == .continue)
            #expect(pair.readAll() == Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
            intervals.append((pair.connection.deadline - clock.now) / Self.second)
        }
        #expect(intervals == [1, 2, 4, 8, 16, 30, 30])
    }

    @Test func fullSendBufferIsNoSignThatTheClientHasLeft() throws {
        let pair = try SocketPair(sendBuffer: 1)
        let timeouts = timeouts()
        pair.connection.outgoing = [Segment([UInt8](repeating: 1, count: 1 << 20))]
        #expect(pair.connection.sendOutgoing() == .blocked)
        pair.connection.outgoing = []
        pair.connection.phase = .waiting
        pair.connection.exchange.allowsInterim = true
        #expect(!timeouts.hasLeft(pair.connection))
        #expect(timeouts.judge(pair.connection) == .continue)
        #expect(pair.connection.deadline != .max)
        #expect(pair.readAll().allSatisfy { $0 == 1 })
        #expect(timeouts.judge(pair.connection) == .continue)
        #expect(pair.readAll() == Array("HTTP/1.1 100 Continue\r\n\r\n".utf8))
    }

    @Test func clientOfHTTP10IsNotProbed() throws {
        let pair = try SocketPair()
        let timeouts = timeouts()
        pair.connection.phase = .waiting
        #expect(!timeouts.hasLeft(pair.connection))
        #expect(timeouts.judge(pair.connection) == .continue)
        #expect(pair.readAll().isEmpty)
    }
}

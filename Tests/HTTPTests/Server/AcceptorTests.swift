import CLinux
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("An acceptor takes connections within the limit of the server") struct AcceptorTests {
    /// An acceptor of one free port, and what it has accepted.
    private final class Fixture {
        let port: Int
        let limit: ConnectionLimit
        let acceptor: Acceptor
        private let poller: Poller
        private var turn: UInt64 = 0
        private(set) var accepted: [Int32] = []
        /// Whether there are idle connections to close.
        var hasIdle = false
        private(set) var closedIdle = 0

        init(limit: Int) throws {
            let listeners = try Listener.tcp(host: "127.0.0.1", port: 0, count: 1)
            guard case .tcp(_, let port) = listeners[0].endpoint else { throw HTTPServerError.alreadyStarted }
            self.port = port
            self.limit = ConnectionLimit(limit)
            poller = try Poller()
            try poller.add(listeners)
            acceptor = Acceptor(listeners, poller: poller, limit: self.limit)
        }

        deinit {
            for number in accepted { close(number) }
        }

        /// Whether the poller reports the listener.
        var isReported: Bool {
            var reports = Poller.Reports()
            poller.wait(&reports, timeout: 0)
            return reports.count > 0
        }

        /// Accepts in a new turn.
        @discardableResult func accept() -> Bool {
            turn += 1
            return acceptor.accept(from: 0, turn: turn, closeIdle: closeIdle) { socket, _ in start(socket) }
        }

        func closeIdle() -> Bool {
            guard hasIdle else { return false }
            closedIdle += 1
            limit.leave(nil)
            return true
        }

        func start(_ socket: consuming OwnedDescriptor) {
            limit.enter(nil)
            accepted.append(socket.release())
        }

        func connect(_ count: Int) throws -> [RawClient] {
            try (0..<count).map { _ in try RawClient(port: port) }
        }
    }

    @Test func eachTurnAcceptsTwiceAsMany() throws {
        let test = try Fixture(limit: 100)
        let clients = try test.connect(10)
        var counts: [Int] = []
        while test.accept() { counts.append(test.accepted.count) }
        #expect(counts == [1, 3, 7])
        #expect(test.accepted.count == clients.count)
        #expect(!test.isReported)
        #expect(test.limit.acceptedCount == 10)
    }

    @Test func clientsBeyondTheLimitWaitUntilAConnectionEnds() throws {
        let test = try Fixture(limit: 2)
        let clients = try test.connect(3)
        while test.accept() {}
        #expect(test.accepted.count == 2)
        #expect(test.acceptor.isPaused && test.limit.isContended)
        // A paused acceptor does not watch its listeners, which would report without end.
        #expect(!test.isReported)
        #expect(!test.accept())
        test.limit.leave(nil)
        test.acceptor.resume()
        #expect(!test.acceptor.isPaused && !test.limit.isContended)
        #expect(test.isReported)
        while test.accept() {}
        #expect(test.accepted.count == clients.count)
    }

    @Test func idleConnectionIsClosedForANewOne() throws {
        let test = try Fixture(limit: 1)
        test.hasIdle = true
        let clients = try test.connect(3)
        while test.accept() {}
        #expect(test.accepted.count == clients.count)
        // Another one is closed before the attempt that finds no client.
        #expect((2...3).contains(test.closedIdle) && test.limit.count <= 1)
        #expect(!test.acceptor.isPaused)
    }

    @Test func closingAcceptsTheBacklogAndEndsThePause() throws {
        let test = try Fixture(limit: 1)
        let clients = try test.connect(2)
        while test.accept() {}
        #expect(test.acceptor.isPaused && !test.acceptor.isSettled)
        test.limit.leave(nil)
        test.acceptor.refuseNewClients()
        #expect(test.acceptor.isOpen)
        try blockUntil("all handshakes to be complete") { test.acceptor.isSettled }
        test.acceptor.close { _ in while test.accept() {} }
        #expect(test.accepted.count == clients.count)
        #expect(!test.acceptor.isOpen && !test.limit.isContended)
        #expect(throws: RawClient.Failure.self) { try RawClient(port: test.port) }
        // A second close does nothing.
        test.acceptor.close { _ in Issue.record("accepted") }
    }

    @Test func clientsOfAnInheritedSocketWaitForTheNextProcess() throws {
        let path = "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
        // The process that passes the socket on keeps it open.
        let original = try Listener.unix(path: path, mode: nil, group: nil)
        let number = fcntl(original.descriptor.number, F_DUPFD_CLOEXEC, 0)
        try #require(number >= 0)
        let listeners = try Listener.inherited(number..<number + 1)
        let poller = try Poller()
        try poller.add(listeners)
        let acceptor = Acceptor(listeners, poller: poller, limit: ConnectionLimit(10))
        let clients = try (0..<3).map { _ in try RawClient(path: path) }
        acceptor.refuseNewClients()
        acceptor.close { _ in Issue.record("accepted") }
        #expect(!acceptor.isOpen)
        for _ in 0..<3 {
            var address = clinux_address()
            let accepted = clinux_accept(original.descriptor.number, &address)
            try #require(accepted >= 0)
            close(accepted)
        }
        withExtendedLifetime((original, clients)) {}
    }

    @Test func handshakeThatHasBegunIsAwaited() async throws {
        try await onThread {
            let test = try Fixture(limit: 10)
            let slow = try UnfinishedHandshake(port: test.port)
            test.acceptor.refuseNewClients()
            #expect(!test.acceptor.isSettled)
            let client = try slow.finish()
            #expect(test.acceptor.isSettled)
            test.accept()
            #expect(test.accepted.count == 1)
            withExtendedLifetime(client) {}
        }
    }
}

@Suite("Connections are counted by client") struct ConnectionLimitTests {
    private func address(_ text: String) throws -> IPAddress { try #require(IPAddress(text)) }

    @Test func aClientHasItsOwnLimit() throws {
        let limit = ConnectionLimit(100, perClient: 2)
        let (first, neighbour, other) = (try address("2001:db8::1"), try address("2001:db8::2"), try address("192.0.2.1"))
        limit.enter(first)
        limit.enter(neighbour)
        let client = try #require(limit.client(of: first))
        #expect(limit.isReached(by: client))
        #expect(!limit.isReached(by: ClientNetwork(other)))
        limit.leave(neighbour)
        #expect(!limit.isReached(by: client))
        limit.leave(first)
        #expect(limit.count == 0)
    }

    @Test func trustedProxiesAndUnixSocketsHaveNone() throws {
        let limit = ConnectionLimit(100, perClient: 1, proxies: try trustedProxies(["10.0.0.0/8"], .xForwardedFor))
        for peer in [try address("10.1.2.3"), nil] { #expect(limit.client(of: peer) == nil) }
        #expect(limit.client(of: try address("11.0.0.1")) != nil)
    }
}

@Suite("Connections are accepted at a growing pace") struct AcceptPaceTests {
    @Test func paceDoublesWhileConnectionsArrive() {
        var pace = AcceptPace()
        #expect((1...9).map { pace.next(turn: $0) } == [1, 2, 4, 8, 16, 32, 64, 64, 64])
    }

    @Test func paceRestartsAfterATurnWithoutConnections() {
        var pace = AcceptPace()
        #expect([1, 2, 4, 5, 6, 9].map { pace.next(turn: $0) } == [1, 2, 1, 2, 4, 1])
    }

    @Test func paceDoublesWithinOneTurn() {
        var pace = AcceptPace()
        #expect((0..<4).map { _ in pace.next(turn: 7) } == [1, 2, 4, 8])
    }
}

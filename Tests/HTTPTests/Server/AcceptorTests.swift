import CLinux
import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

/// A connection of a Unix socket, which counts for no client.
private func anyConnection() -> Connection {
    Connection(socket: OwnedDescriptor(taking: open("/dev/null", O_RDWR | O_CLOEXEC)), generation: 1, peer: nil)
}

@Suite("An acceptor takes connections within the limit of the server") struct AcceptorTests {
    /// An acceptor of one free port, and what it has accepted.
    private final class Fixture {
        let port: Int
        let limit: ConnectionLimit
        let acceptor: Acceptor
        /// The listening socket.
        let listener: Int32
        let events = Shared<[HTTPServerEvent]>([])
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
            listener = listeners[0].descriptor.number
            self.limit = ConnectionLimit(limit) { [events] event in events.update { $0.append(event) } }
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
            limit.leave(anyConnection())
            return true
        }

        func start(_ socket: consuming OwnedDescriptor) {
            limit.enter(anyConnection())
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
        test.limit.leave(anyConnection())
        test.acceptor.resume()
        #expect(!test.acceptor.isPaused && !test.limit.isContended)
        #expect(test.isReported)
        while test.accept() {}
        #expect(test.accepted.count == clients.count)
    }

    /// As with a filter or a security module that refuses the call: the listener stays readable.
    @Test func aListenerThatFailsIsTriedAgainLaterAndReportedOnce() throws {
        let test = try Fixture(limit: 2)
        test.hasIdle = true
        // accept(2) fails with EINVAL from now on.
        try #require(shutdown(test.listener, Int32(SHUT_RD)) == 0)
        for _ in 0..<3 {
            #expect(test.isReported)
            #expect(!test.accept())
            #expect(test.acceptor.isPaused && !test.isReported)
            test.acceptor.resume()
        }
        #expect(test.events.value == [.notAccepting(SystemError("accept", code: EINVAL))])
        // No client gains from their end.
        #expect(test.closedIdle == 0 && test.accepted.isEmpty)
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
        test.limit.leave(anyConnection())
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
            var address = sockaddr_storage()
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

    /// A connection from an address.
    private func connection(_ text: String?) throws -> Connection {
        Connection(
            socket: OwnedDescriptor(taking: open("/dev/null", O_RDWR | O_CLOEXEC)), generation: 1, peer: try text.map(address))
    }

    @Test func aClientHasItsOwnLimit() throws {
        let limit = ConnectionLimit(100, perClient: 2)
        let (first, neighbour) = (try connection("2001:db8::1"), try connection("2001:db8::2"))
        limit.enter(first)
        limit.enter(neighbour)
        let client = try #require(limit.client(of: first.peer))
        #expect(limit.isReached(by: client))
        #expect(!limit.isReached(by: ClientNetwork(try address("192.0.2.1"))))
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

    @Test func onlyAPeerOnAPrivateNetworkMayBeAProxyThatIsNotListed() throws {
        let limit = ConnectionLimit(100, perClient: 1, proxies: try trustedProxies(["10.0.0.0/8"], .xForwardedFor))
        for (peer, mayBe) in [
            ("127.0.0.1", true), ("::1", true), ("192.168.1.1", true), ("172.16.0.1", true), ("::ffff:192.168.1.1", true),
            ("100.64.0.1", true), ("fd00::1", true), ("10.0.0.1", false), ("192.0.2.1", false), ("172.32.0.1", false),
            ("2001:db8::1", false), ("::ffff:192.0.2.1", false),
        ] {
            let connection = try connection(peer)
            limit.enter(connection)
            #expect(connection.mayBeProxy == mayBe, "\(peer)")
        }
    }

    @Test func aProxyOnTheUnixSocketThatIsNotListedIsReportedOnce() throws {
        let events = Shared<[HTTPServerEvent]>([])
        let limit = ConnectionLimit(100, perClient: 1) { event in events.update { $0.append(event) } }
        for _ in 0..<2 {
            let connection = try connection(nil)
            limit.enter(connection)
            #expect(connection.mayBeProxy)
            limit.recognizeProxy(connection)
            limit.leave(connection)
        }
        #expect(events.value == [.unlistedProxy(nil)] && limit.count == 0)
        // The loopback address, in the network of `::`, is another peer.
        let other = try connection("::1")
        #expect(limit.client(of: other.peer) != nil)
        limit.recognizeProxy(other)
        #expect(events.value == [.unlistedProxy(nil), .unlistedProxy(other.peer)] && limit.client(of: other.peer) == nil)
        #expect(
            "\(HTTPServerEvent.unlistedProxy(nil))"
                == "clients behind the Unix socket count as one: set server.trusted_proxies=unix")
    }

    @Test func aRecognizedProxyCountsNoMoreAndNothingIsLeftOfItsCount() throws {
        let limit = ConnectionLimit(100, perClient: 1)
        let (before, after) = (try connection("127.0.0.1"), try connection("127.0.0.1"))
        limit.enter(before)
        let client = try #require(limit.client(of: before.peer))
        #expect(limit.isReached(by: client))
        limit.recognizeProxy(before)
        limit.recognizeProxy(before)
        #expect(!limit.isReached(by: client) && limit.client(of: before.peer) == nil && limit.unlistedProxyCount == 1)
        limit.enter(after)
        limit.leave(before)
        limit.leave(after)
        #expect(limit.count == 0)
    }

    @Test func refusedConnectionsCountForNoClientAndAreReportedOnceAMinute() throws {
        let events = Shared<[HTTPServerEvent]>([])
        let limit = ConnectionLimit(16, perClient: 1) { event in events.update { $0.append(event) } }
        let refused = try (0..<2).map { _ in try connection("192.0.2.1") }
        for (index, connection) in refused.enumerated() {
            connection.isRefused = true
            #expect(!limit.hasManyRefused)
            limit.enter(connection)
            limit.refuse(connection.peer, at: 1_000_000_000 * UInt64(index + 1))
        }
        let client = ClientNetwork(try address("192.0.2.1"))
        #expect(limit.hasManyRefused && !limit.isReached(by: client))
        limit.refuse(try address("192.0.2.2"), at: 62_000_000_000)
        let (one, other) = (try address("192.0.2.1"), try address("192.0.2.2"))
        #expect(
            events.value == [
                .refusedConnections(of: one, count: 1, limit: 1), .refusedConnections(of: other, count: 2, limit: 1),
            ])
        for connection in refused { limit.leave(connection) }
        #expect(!limit.hasManyRefused && limit.count == 0 && limit.refusedCount == 3)
    }
}

@Suite("Connections are held by client") struct HeldConnectionsTests {
    @Test func theyAreServedInTheOrderOfTheirArrivalAndExpire() throws {
        let clients = try ["192.0.2.1", "192.0.2.2"].map { ClientNetwork(try #require(IPAddress($0))) }
        var held = HeldConnections()
        let connections = (0..<4).map { _ in anyConnection() }
        for (index, connection) in connections.enumerated() {
            let isHeld = held.hold(connection, of: clients[index % 2], at: UInt64(index) * 1_000_000_000)
            #expect(isHeld)
        }
        #expect(held.count == 4 && Set(held.clients) == Set(clients))
        let first = held.next(of: clients[0])
        #expect(first === connections[0])
        let (early, late) = (held.expired(at: 4_999_999_999), held.expired(at: 6_000_000_000))
        #expect(early.isEmpty && late.count == 1 && late.first === connections[1])
        #expect(held.contains(clients[0]) && held.contains(clients[1]))
        let rest = held.removeAll()
        #expect(rest.count == 2 && held.isEmpty && held.clients.isEmpty)
        let none = held.next(of: clients[0])
        #expect(none == nil)
    }

    @Test func theirNumberIsBounded() throws {
        let client = ClientNetwork(try #require(IPAddress("192.0.2.1")))
        var held = HeldConnections()
        var count = 0
        for _ in 0..<300 where held.hold(anyConnection(), of: client, at: 0) { count += 1 }
        #expect(count == 256 && held.count == 256)
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

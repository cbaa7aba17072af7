import Glibc
import SystemIO
import TestSupport
import Testing

@testable import HTTP

@Suite("A server listens on its endpoints") struct ListeningTests {
    private static let request = "GET /echo HTTP/1.1\r\nHost: h\r\nX-Request-Id: i\r\n\r\n"

    @Test func allLoopsShareTheSelectedPort() async throws {
        try await withServer(configure: { $0.threads = 4 }) { server, port in
            #expect(port > 0)
            let loopback = try #require(IPAddress("127.0.0.1"))
            #expect(server.endpoints == [.tcp(address: loopback, port: port)])
            try await onThread {
                for _ in 0..<40 {
                    let answer = try RawClient(port: port).request(Self.request)
                    #expect(answer.status == 200)
                }
            }
        }
    }

    @Test(.enabled(if: RawClient.hasIPv6), arguments: ["::1", "::"])
    func serverListensOnIPv6(host: String) async throws {
        try await withServer(configure: { $0.host = host }) { server, port in
            let text = try await onThread { try RawClient(port: port, ipv6: true).request(Self.request).text }
            #expect(text == "GET h ::1 i")
            if host == "::" {
                let text = try await onThread { try RawClient(port: port).request(Self.request).text }
                #expect(text == "GET h 127.0.0.1 i")
            }
            #expect(server.endpoints.first?.description == "[\(host)]:\(port)")
        }
    }

    @Test func serverListensOnAUnixSocket() async throws {
        let path = "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.host = nil
            configuration.unixPath = path
        }
        try await withServer(configure: configure) { server, _ in
            #expect(server.endpoints == [.unix(path: path)])
            #expect(server.port == nil)
            try await onThread {
                for _ in 0..<20 {
                    let answer = try RawClient(path: path).request(Self.request)
                    #expect(answer.text == "GET h none i")
                }
                let file = try RawClient(path: path).request("GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                #expect(file.body == StubHandler.content)
            }
            var configuration = HTTPServerConfiguration()
            configure(&configuration)
            let second = HTTPServer(configuration: configuration, handler: StubHandler())
            #expect(throws: HTTPServerError.addressInUse("unix:\(path)")) { try second.start() }
        }
        #expect(access(path, F_OK) != 0)
    }

    @Test func leftoverUnixSocketIsReplaced() async throws {
        let path = "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
        try close(Self.socket(at: path, type: Int32(SOCK_STREAM.rawValue)))
        try await withServer(configure: { $0.unixPath = path }) { server, _ in
            #expect(server.endpoints.count == 2)
            let status = try await onThread { try RawClient(path: path).request(Self.request).status }
            #expect(status == 200)
        }
    }

    @Test func openUnixSocketOfAnotherTypeIsNotReplaced() throws {
        let path = "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
        let other = try Self.socket(at: path, type: Int32(SOCK_DGRAM.rawValue))
        defer {
            close(other)
            unlink(path)
        }
        #expect(throws: HTTPServerError.addressInUse("unix:\(path)")) {
            _ = try Listener.unix(path: path, mode: nil, group: nil)
        }
        #expect(access(path, F_OK) == 0)
    }

    /// A Unix socket that does not listen.
    private static func socket(at path: String, type: Int32) throws -> Int32 {
        let number = Glibc.socket(AF_UNIX, type, 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0)
        return number
    }

    @Test func unixSocketHasItsConfiguredModeAndGroup() async throws {
        let path = "/tmp/http-tests-\(getpid())-\(UInt32.random(in: .min ... .max)).sock"
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.unixPath = path
            $0.unixMode = 0o660
            $0.unixGroup = "\(getgid())"
        }
        try await withServer(configure: configure) { _, _ in
            var status = stat()
            #expect(lstat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o660)
            #expect(status.st_gid == getgid())
            let answer = try await onThread { try RawClient(path: path).request(Self.request).status }
            #expect(answer == 200)
        }
        var configuration = HTTPServerConfiguration()
        configuration.host = nil
        configuration.unixPath = path
        configuration.unixGroup = "no such group"
        let server = HTTPServer(configuration: configuration, handler: StubHandler())
        #expect(throws: HTTPServerError.unknownGroup("no such group")) { try server.start() }
    }

    @Test func failureToListenHasItsReason() async throws {
        try await withServer { _, port in
            func start(_ change: (inout HTTPServerConfiguration) -> Void) throws {
                var configuration = HTTPServerConfiguration()
                change(&configuration)
                let server = HTTPServer(configuration: configuration, handler: StubHandler())
                try server.start()
            }
            #expect(throws: HTTPServerError.addressInUse("127.0.0.1:\(port)")) { try start { $0.port = port } }
            #expect(throws: HTTPServerError.addressNotAvailable("192.0.2.1:0")) {
                try start {
                    $0.host = "192.0.2.1"
                    $0.port = 0
                }
            }
            #expect(throws: HTTPServerError.unknownHost("256.1.1.1")) { try start { $0.host = "256.1.1.1" } }
        }
        #expect(HTTPServerError.addressInUse("127.0.0.1:80").description == "Another process already listens on 127.0.0.1:80.")
    }

    @Test func secondStartIsRefused() async throws {
        try await withServer { server, _ in
            #expect(throws: HTTPServerError.alreadyStarted) { try server.start() }
        }
    }

    @Test func openConnectionsAreLimited() async throws {
        try await withServer(configure: { $0.maxConnections = 4 }) { server, port in
            // Every client is served: while others wait, a response closes its connection.
            let clients = Shared<[RawClient]>([])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<12 {
                    group.addTask {
                        try await onThread {
                            let client = try RawClient(port: port)
                            let answer = try client.request(Self.request)
                            #expect(answer.status == 200)
                            clients.update { $0.append(client) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(clients.value.count == 12)
            #expect(server.counters.openConnections <= 4)
        }
    }

    @Test func clientAtItsLimitIsRefusedAndOthersAreNot() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.threads = 1
            configuration.maxConnectionsPerClient = 3
            configuration.headTimeout = .seconds(60)
        }
        try await withServer(configure: configure) { server, port in
            try await onThread {
                // Incomplete heads are not idle, so they are not closed for other connections.
                let holders = try (0..<3).map { _ in
                    let client = try RawClient(port: port)
                    try client.send("GET /file HTTP/1.1\r\n")
                    return client
                }
                try blockUntil("the connections to be accepted") { server.counters.openConnections == 3 }
                let (impatient, silent) = (try RawClient(port: port), try RawClient(port: port))
                try impatient.send(Self.request)
                #expect(try RawClient(port: port, from: 0x7F00_0002).request(Self.request).status == 200)
                // They are held for a moment, and then refused.
                for client in [impatient, silent] {
                    let answer = try client.response()
                    #expect(answer.status == 503 && answer["Retry-After"] == "2" && answer["Connection"] == "close")
                    #expect(client.isClosed())
                }
                #expect(server.counters.refusedConnections == 2)
                try blockUntil("the refused connections to be closed") { server.counters.openConnections <= 4 }
                // One is served as soon as another one ends.
                let next = try RawClient(port: port)
                try next.send(Self.request)
                try holders[0].send("Host: h\r\nConnection: close\r\n\r\n")
                #expect(try holders[0].response().status == 200)
                #expect(try next.response().status == 200)
                #expect(server.counters.refusedConnections == 2)
            }
        }
    }

    @Test func incompleteRequestOfAClientAtItsLimitIsRefusedForTheLimit() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.threads = 1
            configuration.maxConnectionsPerClient = 1
            configuration.headTimeout = .seconds(60)
        }
        try await withServer(configure: configure) { server, port in
            try await onThread {
                let holder = try RawClient(port: port)
                try holder.send("GET /file HTTP/1.1\r\n")
                try blockUntil("the connection to be accepted") { server.counters.openConnections == 1 }
                let slow = try RawClient(port: port)
                let answer = try slow.request("HEAD /file HTTP/1.1\r\nHost: h\r\n", method: "HEAD")
                #expect(answer.status == 503 && answer["Retry-After"] == "2")
                #expect(slow.isClosed())
            }
        }
    }

    @Test func idleConnectionOfAClientAtItsLimitIsClosedForItsNextOne() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.threads = 1
            configuration.maxConnectionsPerClient = 2
        }
        try await withServer(configure: configure) { server, port in
            try await onThread {
                let idle = try (0..<2).map { _ in try RawClient(port: port) }
                for client in idle { #expect(try client.request(Self.request).status == 200) }
                // A connection that has just become idle is kept, so that the attempts before that are refused.
                try blockUntil("an idle connection to be closed") {
                    (try? RawClient(port: port).request(Self.request))?.status == 200
                }
                #expect(idle[0].isClosed())
                #expect(server.counters.openConnections <= 2)
            }
        }
    }

    @Test func connectionsBeyondThoseThatAreHeldGet503AtOnce() async throws {
        let events = Shared<[HTTPServerEvent]>([])
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.threads = 1
            configuration.maxConnectionsPerClient = 1
            configuration.headTimeout = .seconds(60)
        }
        try await withServer(report: { event in events.update { $0.append(event) } }, configure: configure) { server, port in
            try await onThread {
                let holder = try RawClient(port: port)
                try holder.send("GET /file HTTP/1.1\r\n")
                try blockUntil("the connection to be accepted") { server.counters.openConnections == 1 }
                let clients = try (0..<300).map { _ in try RawClient(port: port) }
                for client in clients.suffix(4) { #expect(try client.request(Self.request).status == 503) }
                // The others are still held: one that ends is enough for all of them.
                try holder.send("Host: h\r\nConnection: close\r\n\r\n")
                #expect(try holder.response().status == 200)
                let last = "GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
                for client in clients.prefix(3) { #expect(try client.request(last).status == 200) }
                #expect(server.counters.refusedConnections >= 40)
            }
            // Once a minute.
            let peer = try #require(IPAddress("127.0.0.1"))
            #expect(events.value == [.refusedConnections(of: peer, count: 1, limit: 1)])
        }
    }

    @Test(arguments: ["X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "Via: 1.1 proxy", "X-Real-IP: 192.0.2.1"])
    func aProxyOnThisMachineThatIsNotListedHasNoLimitOfItsOwn(_ field: String) async throws {
        let events = Shared<[HTTPServerEvent]>([])
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.maxConnectionsPerClient = 2
            configuration.headTimeout = .seconds(60)
        }
        try await withServer(report: { event in events.update { $0.append(event) } }, configure: configure) { server, port in
            try await onThread {
                // Those that wait when the first request shows the proxy are served too.
                let holders = try (0..<2).map { _ in
                    let client = try RawClient(port: port)
                    try client.send("GET /file HTTP/1.1\r\n")
                    return client
                }
                try blockUntil("the connections to be accepted") { server.counters.openConnections == 2 }
                let waiting = try (0..<4).map { _ in try RawClient(port: port) }
                for client in waiting { try client.send(Self.request) }
                try holders[0].send("Host: h\r\n\(field)\r\n\r\n")
                #expect(try holders[0].response().status == 200)
                for client in waiting { #expect(try client.response().status == 200) }
                // Other clients keep their limit.
                let others = try (0..<2).map { _ in try RawClient(port: port, from: 0x7F00_0002) }
                for client in others { try client.send("GET /file HTTP/1.1\r\n") }
                try blockUntil("all connections to be accepted") { server.counters.openConnections == 8 }
                let beyond = try RawClient(port: port, from: 0x7F00_0002)
                #expect(try beyond.request(Self.request).status == 503)
            }
            let peer = try #require(IPAddress("127.0.0.1"))
            #expect(events.value.first == .unlistedProxy(peer) && events.value.filter { $0 == .unlistedProxy(peer) }.count == 1)
            #expect(
                "\(HTTPServerEvent.unlistedProxy(peer))"
                    == "clients behind 127.0.0.1 count as one: set server.trusted_proxies=127.0.0.1")
        }
    }

    @Test func trustedProxyHasNoLimitOfItsOwn() async throws {
        let proxies = try #require(ClientList(["127.0.0.1"]))
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.maxConnectionsPerClient = 1
            configuration.trustedProxies = proxies
        }
        try await withServer(configure: configure) { _, port in
            try await onThread {
                let clients = try (0..<3).map { _ in try RawClient(port: port) }
                for client in clients { #expect(try client.request(Self.request).status == 200) }
            }
        }
    }

    @Test func responsesCloseConnectionsWhileOthersWait() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = { configuration in
            configuration.threads = 1
            configuration.maxConnections = 1
        }
        try await withServer(configure: configure) { _, port in
            try await onThread {
                let first = try RawClient(port: port)
                #expect(try first.request(Self.request)["Connection"] == nil)
                let second = try RawClient(port: port)
                // A busy client is never idle for long, so its connection ends only because the response says so.
                while try first.request(Self.request)["Connection"] == nil {}
                #expect(first.isClosed())
                #expect(try second.request(Self.request).status == 200)
            }
        }
    }

    @Test(arguments: [
        ([:], 0), (["LISTEN_PID": "7", "LISTEN_FDS": "2"], 2), (["LISTEN_PID": "8", "LISTEN_FDS": "2"], 0),
        (["LISTEN_PID": "7"], 0), (["LISTEN_PID": "7", "LISTEN_FDS": "x"], 0), (["LISTEN_PID": "7", "LISTEN_FDS": "-1"], 0),
    ])
    func socketsThatSystemdPassesAreAdopted(environment: [String: String], count: Int) {
        let activation = SocketActivation(environment: { environment[$0] }, process: 7)
        #expect(activation.descriptors == 3..<Int32(3 + count))
    }
}

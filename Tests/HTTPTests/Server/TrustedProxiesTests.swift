import SystemIO
import Testing

@testable import HTTP

@Suite("Trusted proxies name the client") struct TrustedProxiesTests {
    @Test(
        arguments: [
            ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.2"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4:5678"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4, unknown"], "::"),
            ("10.0.0.1", ["X-Forwarded-For: unknown, 10.0.0.2"], "::"),
            ("10.0.0.1", ["X-Forwarded-For: 10.0.0.3, 10.0.0.2"], "10.0.0.3"),
            ("10.0.0.1", ["X-Forwarded-For: 2001:db8::1"], "2001:db8::1"),
            ("10.0.0.1", ["X-Forwarded-For: [2001:db8::1"], "::"),
            ("10.0.0.1", ["X-Forwarded-For: ::ffff:1.2.3.4"], "1.2.3.4"),
            // A client's quotes do not hide the element that the proxy adds.
            ("10.0.0.1", ["X-Forwarded-For: \", 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: \"6.6.6.6, 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: \"", "X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: ,"], "10.0.0.1"),
            ("10.0.0.1", [], "10.0.0.1"),
            ("9.9.9.9", ["X-Forwarded-For: 1.2.3.4"], "9.9.9.9"),
            // A client's Forwarded, which the proxy passes on.
            ("10.0.0.1", ["Forwarded: for=6.6.6.6", "X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["Forwarded: for=6.6.6.6"], "10.0.0.1"),
        ] as [(String, [String], String)])
    func lastElementBeforeTheTrustedProxiesIsTheClient(peer: String, fields: [String], client: String) throws {
        try expectClient(client, of: fields, from: peer, .xForwardedFor)
    }

    @Test(
        arguments: [
            ("10.0.0.1", ["Forwarded: for=6.6.6.6, for=\"[2001:db8::1]:4711\";proto=http"], "2001:db8::1"),
            ("10.0.0.1", ["Forwarded: for=_hidden"], "::"),
            ("10.0.0.1", ["Forwarded: for=_hidden, for=10.0.0.2"], "::"),
            ("10.0.0.1", ["Forwarded: for="], "::"),
            ("10.0.0.1", ["Forwarded: proto=https"], "::"),
            ("10.0.0.1", ["Forwarded: host=\"a,for=6.6.6.6;for=6.6.6.6\";for=1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;host=\"a\\\", for=6.6.6.6, \""], "1.2.3.4"),
            // The elements of a line with an odd quote cannot be told apart; those of the lines after it can.
            ("10.0.0.1", ["Forwarded: for=\""], "::"),
            ("10.0.0.1", ["Forwarded: for=\", for=1.2.3.4"], "::"),
            ("10.0.0.1", ["Forwarded: for=\"", "Forwarded: for=1.2.3.4"], "1.2.3.4"),
            ("10.0.0.1", ["Forwarded: for=\"", "Forwarded: for=10.0.0.2"], "::"),
            ("10.0.0.1", [], "10.0.0.1"),
            ("9.9.9.9", ["Forwarded: for=1.2.3.4"], "9.9.9.9"),
            // A client's X-Forwarded-For, which the proxy passes on.
            ("10.0.0.1", ["Forwarded: proto=http;For=1.2.3.4", "X-Forwarded-For: 6.6.6.6"], "1.2.3.4"),
            ("10.0.0.1", ["X-Forwarded-For: 6.6.6.6"], "10.0.0.1"),
        ] as [(String, [String], String)])
    func lastElementOfForwardedIsTheClientIfProxiesWriteIt(peer: String, fields: [String], client: String) throws {
        try expectClient(client, of: fields, from: peer, .forwarded)
    }

    private func expectClient(_ client: String, of fields: [String], from peer: String, _ field: ForwardedField) throws {
        let proxies = try trustedProxies(["10.0.0.0/8"], field)
        try withHead((fields.isEmpty ? ["X: y"] : fields).joined(separator: "\r\n")) { head in
            #expect(proxies.origin(peer: IPAddress(peer), head: head).client?.description == client)
        }
    }

    @Test(
        arguments: [
            ("10.0.0.1", [], false), ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4, 10.0.0.2"], false),
            ("10.0.0.1", ["X-Forwarded-For: unknown"], false), ("10.0.0.1", ["X-Forwarded-For: 10.0.0.3, 10.0.0.2"], true),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4"], true), ("10.0.0.1", ["Via: 1.1 a"], true), ("9.9.9.9", [], false),
            ("9.9.9.9", ["X-Forwarded-For: 1.2.3.4"], true), ("unix", [], false), ("unix", ["Via: 1.1 a"], true),
            ("9.9.9.9", ["X-Real-IP: 1.2.3.4"], true),
        ] as [(String, [String], Bool)])
    func anAddressThatProxiesDoNotSurpassMayBeTheirs(peer: String, fields: [String], mayBeProxy: Bool) throws {
        let proxies = try trustedProxies(["10.0.0.0/8"], .xForwardedFor)
        try withHead((fields.isEmpty ? ["X: y"] : fields).joined(separator: "\r\n")) { head in
            #expect(proxies.origin(peer: IPAddress(peer), head: head).mayBeProxy == mayBeProxy)
        }
    }

    /// A client that no trusted proxy names must not have the rights of the proxy or of a Unix socket.
    @Test(arguments: [ForwardedField.xForwardedFor, .forwarded], ["10.0.0.1", "unix"])
    func unknownClientIsOnNoList(field: ForwardedField, peer: String) throws {
        let proxies = try trustedProxies(["10.0.0.0/8", "unix"], field)
        let list = try #require(ClientList(["10.0.0.0/8", "127.0.0.0/8", "::1", "fc00::/7", "unix"]))
        try withHead("X-Forwarded-For: unknown", "Forwarded: for=unknown") { head in
            #expect(!list.contains(proxies.origin(peer: IPAddress(peer), head: head).client))
        }
    }

    @Test(
        arguments: [
            ("10.0.0.1", ["X-Forwarded-Proto: https"], HTTPScheme.https),
            ("10.0.0.1", ["X-Forwarded-Proto: HTTPS", "X-Forwarded-For: 1.2.3.4, 10.0.0.2"], .https),
            ("10.0.0.1", ["X-Forwarded-Proto: http, https, http", "X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.2"], .https),
            ("10.0.0.1", ["X-Forwarded-Proto: https, http"], .http),
            ("10.0.0.1", ["X-Forwarded-Proto: \", https"], .https),
            ("10.0.0.1", ["X-Forwarded-Proto: ftp"], .http),
            ("10.0.0.1", [], .http),
            ("9.9.9.9", ["X-Forwarded-Proto: https"], .http),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;proto=https", "X-Forwarded-For: 1.2.3.4"], .http),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;proto=http", "X-Forwarded-Proto: https"], .https),
        ] as [(String, [String], HTTPScheme)])
    func schemeIsThatOfTheOutermostTrustedProxy(peer: String, fields: [String], scheme: HTTPScheme) throws {
        try expectScheme(scheme, of: fields, from: peer, .xForwardedFor)
    }

    @Test(
        arguments: [
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;proto=https;by=_p"], HTTPScheme.https),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;Proto=\"https\"", "X-Forwarded-Proto: http"], .https),
            ("10.0.0.1", ["Forwarded: for=6.6.6.6;proto=https, for=1.2.3.4"], .http),
            ("10.0.0.1", ["Forwarded: proto=https, for=1.2.3.4;proto=https, for=10.0.0.2;proto=http"], .https),
            ("10.0.0.1", ["Forwarded: for=1.2.3.4;proto=https, for=\""], .http),
            ("9.9.9.9", ["Forwarded: for=1.2.3.4;proto=https"], .http),
            ("10.0.0.1", ["X-Forwarded-Proto: https"], .http),
        ] as [(String, [String], HTTPScheme)])
    func schemeIsThatOfForwardedIfProxiesWriteIt(peer: String, fields: [String], scheme: HTTPScheme) throws {
        try expectScheme(scheme, of: fields, from: peer, .forwarded)
    }

    private func expectScheme(_ scheme: HTTPScheme, of fields: [String], from peer: String, _ field: ForwardedField) throws {
        let proxies = try trustedProxies(["10.0.0.0/8"], field)
        try withHead((fields.isEmpty ? ["X: y"] : fields).joined(separator: "\r\n")) { head in
            let origin = proxies.origin(peer: IPAddress(peer), head: head)
            let found = withUnsafePointer(to: head) { HTTPRequest(head: $0, generatedID: 1, origin: origin).scheme }
            #expect(found == scheme)
        }
    }

    @Test func unixSocketIsTrustedIfListed() throws {
        try withHead("X-Forwarded-For: 1.2.3.4") { head in
            let trusting = try trustedProxies(["unix"], .xForwardedFor)
            let other = try trustedProxies(["10.0.0.0/8"], .xForwardedFor)
            #expect(trusting.origin(peer: nil, head: head).client?.description == "1.2.3.4")
            let origin = other.origin(peer: nil, head: head)
            #expect(origin.client?.description == "::" && origin.isUnlistedProxy)
        }
    }

    /// A local process has no limit, but any client may be behind a proxy.
    @Test(
        arguments: [
            ("X: y", nil), ("X-Forwarded-For: 1.2.3.4", "::"), ("Forwarded: for=1.2.3.4", "::"), ("Via: 1.1 a", "::"),
            ("X-Real-IP: 1.2.3.4", "::"),
        ] as [(String, String?)])
    func clientsBehindAnUntrustedProxyOnAUnixSocketCountAsOne(_ field: String, _ client: String?) throws {
        for proxies in [TrustedProxies(), try trustedProxies(["10.0.0.0/8"], .xForwardedFor)] {
            try withHead(field) { head in
                let origin = proxies.origin(peer: nil, head: head)
                #expect(origin.client?.description == client && origin.isUnlistedProxy == (client != nil))
            }
            #expect(proxies.mayBeUnlisted(nil))
        }
        #expect(!(try trustedProxies(["unix"], .xForwardedFor).mayBeUnlisted(nil)))
    }

    @Test func clientsOfOneNetworkAreLimitedTogether() throws {
        func network(_ text: String) throws -> ClientNetwork { ClientNetwork(try #require(IPAddress(text))) }
        #expect(try network("2001:db8:1:2::1") == network("2001:db8:1:2:ffff::9"))
        #expect(try network("2001:db8:1:2::1") != network("2001:db8:1:3::1"))
        #expect(try network("1.2.3.4") != network("1.2.3.5"))
        #expect(try network("::ffff:1.2.3.4") == network("1.2.3.4"))
        // An IPv6 network whose number is that of an IPv4 address.
        #expect(try network("::102:304:0:0:0:1") != network("1.2.3.4"))
    }

    @Test func emptyListContainsNoClient() throws {
        #expect(!ClientList().contains(IPAddress("127.0.0.1")))
        #expect(!ClientList().contains(nil))
        let list = try #require(ClientList(["unix", "10.0.0.0/8"]))
        #expect(list.contains(nil) && list.contains(IPAddress("10.1.2.3")))
        #expect(!list.contains(IPAddress("::ffff:11.1.2.3")))
        #expect(ClientList(["10.0.0.0/33"]) == nil)
    }

    /// Addresses of peers and in fields are unmapped.
    @Test func entriesInMappedFormNameIPv4Clients() throws {
        let list = try #require(ClientList(["::ffff:10.0.0.1", "::ffff:192.168.0.0/112"]))
        #expect(list.contains(IPAddress("10.0.0.1")) && !list.contains(IPAddress("10.0.0.2")))
        #expect(list.contains(IPAddress("192.168.3.4")) && !list.contains(IPAddress("192.169.0.1")))
        let proxies = try trustedProxies(["::ffff:10.0.0.0/104"], .xForwardedFor)
        try withHead("X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.2") { head in
            #expect(proxies.origin(peer: IPAddress("10.0.0.1"), head: head).client?.description == "1.2.3.4")
        }
    }
}

/// The proxies of these entries.
func trustedProxies(_ entries: [String], _ field: ForwardedField) throws -> TrustedProxies {
    TrustedProxies(try #require(ClientList(entries)), field)
}

extension ClientList {
    /// Nil if an entry is malformed.
    init?(_ entries: [String]) {
        let patterns = entries.compactMap(ClientPattern.init)
        guard patterns.count == entries.count else { return nil }
        self.init(patterns)
    }
}

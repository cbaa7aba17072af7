import SystemIO
import Testing

@testable import HTTP

@Suite struct TrustedProxiesTests {
    @Test(arguments: [
        ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["X-Forwarded-For: 6.6.6.6, 1.2.3.4, 10.0.0.2"], "1.2.3.4"),
        ("10.0.0.1", ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-For: 1.2.3.4"], "1.2.3.4"),
        ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4:5678"], "1.2.3.4"),
        ("10.0.0.1", ["X-Forwarded-For: 1.2.3.4, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["X-Forwarded-For: 10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["Forwarded: for=6.6.6.6, for=\"[2001:db8::1]:4711\";proto=http"], "2001:db8::1"),
        ("10.0.0.1", ["Forwarded: proto=http;For=1.2.3.4", "X-Forwarded-For: 6.6.6.6"], "1.2.3.4"),
        ("10.0.0.1", ["Forwarded: for=_hidden"], "10.0.0.1"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("9.9.9.9", ["X-Forwarded-For: 1.2.3.4"], "9.9.9.9"),
        ("9.9.9.9", ["Forwarded: for=1.2.3.4"], "9.9.9.9"),
    ])
    func believesOnlyWhatTrustedProxiesAdded(peer: String, fields: [String], client: String) throws {
        let proxies = try TrustedProxies(["10.0.0.0/8"])
        try withHead((fields.isEmpty ? ["X: y"] : fields).joined(separator: "\r\n")) { head in
            #expect(proxies.client(peer: IPAddress(peer), head: head)?.description == client)
        }
    }

    @Test func trustsTheUnixSocketWhereToldTo() throws {
        try withHead("X-Forwarded-For: 1.2.3.4") { head in
            let trusting = try TrustedProxies(["unix"])
            let other = try TrustedProxies(["10.0.0.0/8"])
            #expect(trusting.client(peer: nil, head: head)?.description == "1.2.3.4")
            #expect(other.client(peer: nil, head: head) == nil)
        }
    }

    @Test func namesTheEntryThatIsWrong() {
        #expect { try TrustedProxies(["10.0.0.0/8", "proxy.example"]) } throws: { error in
            (error as? TrustedProxies.Malformed)?.entry == "proxy.example"
        }
    }
}

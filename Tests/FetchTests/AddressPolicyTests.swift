import Glibc
import SystemIO
import Testing

@testable import Fetch

@Suite("Address policies refuse special addresses") struct AddressPolicyTests {
    private let policy = AddressPolicy(ports: [80, 443])

    private func address(_ text: String) throws -> IPAddress {
        try #require(IPAddress(text))
    }

    private func refusal(_ policy: AddressPolicy, _ text: String, port: Int = 80) throws -> AddressRefusal? {
        policy.refusal(of: try address(text), port: port, for: try WebAddress("http://example.com/"))
    }

    @Test(arguments: [
        "1.0.0.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "93.184.215.14", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
        "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.31.195.255", "192.88.98.255", "192.88.100.0", "192.167.255.255",
        "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
        "223.255.255.255", "2000::1", "2001:200::", "2001:4860:4860::8888", "2001:db7:ffff::", "2001:db9::", "2001:ffff::",
        "2003::", "2400:cb00::1", "2606:2800:220:1::1", "2620:4f:7fff::1", "2a00::1", "3ffd::1", "3fff:1000::",
    ])
    func ordinaryPublicAddressesAreAllowed(text: String) throws {
        #expect(try refusal(policy, text) == nil)
    }

    @Test(arguments: [
        "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "100.100.100.200",
        "127.0.0.1",
        "127.255.255.255", "168.63.129.16", "169.254.0.0", "169.254.169.254", "169.254.170.2", "169.254.255.255", "172.16.0.0",
        "172.31.255.255", "192.0.0.0", "192.0.0.192", "192.0.0.255", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
        "192.168.0.0", "192.168.255.255", "192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.1",
        "224.0.0.0", "239.255.255.255", "240.0.0.0", "255.255.255.255",
    ])
    func specialIPv4AddressesAreRefused(text: String) throws {
        #expect(try isSpecial(text))
    }

    @Test(arguments: [
        "::", "::1", "::2", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
        "64:ff9b::808:808", "64:ff9b:1::1", "64:ff9b:1:7f00:0:100::", "100::1", "100:0:0:1::1", "1fff:ffff::1", "2001::1",
        "2001:0:7f00:1::", "2001:1::1", "2001:2::1", "2001:3::1", "2001:4:112::1", "2001:10::1", "2001:20::1", "2001:30::1",
        "2001:1ff:ffff::", "2001:db8::1", "2001:db8:ffff::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3ffe::1",
        "3fff::1", "3fff:fff:ffff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1",
        "2606:2800:220:1:0:5efe:7f00:1", "2606:2800:220:1:200:5efe:808:808",
    ])
    func specialIPv6AddressesAreRefused(text: String) throws {
        #expect(try isSpecial(text))
    }

    private func isSpecial(_ text: String) throws -> Bool {
        if case .address = try refusal(policy, text) { true } else { false }
    }

    @Test func everyRowOfTheTableIsARange() {
        #expect(SpecialPurposeAddresses.blocks.count == SpecialPurposeAddresses.rows.count)
    }

    @Test func otherPortsAreRefused() throws {
        #expect(try refusal(policy, "8.8.8.8", port: 443) == nil)
        #expect(try refusal(policy, "8.8.8.8", port: 22) == .port(22, allowed: [80, 443]))
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", 80, true),
        ("127.0.0.1", "127.0.0.1", 22, false),
        ("127.0.0.1", "127.0.0.2", 80, false),
        ("127.0.0.1:9000", "127.0.0.1", 9000, true),
        ("127.0.0.1:9000", "127.0.0.1", 80, false),
        ("127.0.0.1", "::ffff:127.0.0.1", 80, false),
        ("10.0.0.0/8", "10.200.3.4", 80, true),
        ("10.0.0.0/8", "11.0.0.1", 80, true),
        ("10.0.0.0/8", "11.0.0.1", 22, false),
        ("10.0.0.0/8:22", "10.0.0.1", 22, false),
        ("10.0.0.0/8:81", "10.0.0.1", 81, true),
        ("::1", "::1", 80, true),
        ("[::1]:9000", "::1", 9000, true),
        ("[::1]:9000", "::1", 80, false),
        ("fd00::/8", "fd12::1", 80, true),
        ("example.com", "10.0.0.1", 80, true),
        ("example.com", "10.0.0.1", 22, false),
        ("example.com:7000", "10.0.0.1", 80, false),
        ("*.example.com", "10.0.0.1", 80, false),
        ("other.example", "10.0.0.1", 80, false),
    ])
    func exceptionsAllowTheirAddressesAtAllowedPorts(entry: String, text: String, port: Int, isAllowed: Bool) throws {
        let policy = AddressPolicy(ports: [80, 81, 7000, 9000], exceptions: [try #require(AddressException(entry))])
        #expect(try (refusal(policy, text, port: port) == nil) == isAllowed)
    }

    @Test(arguments: [
        "", "*", "*:80", "*.*", "a.*", "**", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "127.0.0.1:0",
        "127.0.0.1:", "[::1]:x", "a b", "http://example.com", "1.2.3",
    ])
    func malformedExceptionIsRefused(text: String) {
        #expect(AddressException(text) == nil)
    }

    @Test func urlWithAnAddressIsJudgedWithoutALookup() throws {
        let policy = AddressPolicy(ports: [80, 9000], exceptions: [try #require(AddressException("10.0.0.1:9000"))])
        #expect(policy.refusal(of: try WebAddress("http://example.com/")) == nil)
        #expect(policy.refusal(of: try WebAddress("http://example.com:81/")) == .port(81, allowed: [80, 9000]))
        #expect(policy.refusal(of: try WebAddress("http://example.com:9000/")) == nil)
        #expect(policy.refusal(of: try WebAddress("http://10.0.0.1:9000/")) == nil)
        #expect(policy.refusal(of: try WebAddress("http://10.0.0.1:22/")) == .port(22, allowed: [80, 9000]))
        #expect(policy.refusal(of: try WebAddress("http://10.0.0.2/")) == .address(purpose: "private use"))
    }

    /// The examples of RFC 6052 section 2.4.
    @Test(arguments: [
        ("2001:db8::/32", "2001:db8:c000:221::"),
        ("2001:db8:100::/40", "2001:db8:1c0:2:21::"),
        ("2001:db8:122::/48", "2001:db8:122:c000:2:2100::"),
        ("2001:db8:122:300::/56", "2001:db8:122:3c0:0:221::"),
        ("2001:db8:122:344::/64", "2001:db8:122:344:c0:2:2100::"),
        ("2001:db8:122:344::/96", "2001:db8:122:344::c000:221"),
        ("64:ff9b::/96", "64:ff9b::192.0.2.33"),
    ])
    func translatedAddressIsExtracted(prefix: String, text: String) throws {
        let prefix = try #require(TranslationPrefix(prefix))
        #expect(prefix.translated(try address(text)) == IPAddress("192.0.2.33"))
        #expect(prefix.translated(try address("2a00::1")) == nil)
    }

    @Test func translatedAddressesAreJudgedByTheIPv4AddressTheyCarry() throws {
        let prefixes = ["64:ff9b::/96", "2a00:1::/96"].compactMap { TranslationPrefix($0) }
        let policy = AddressPolicy(ports: [80], translationPrefixes: prefixes)
        #expect(try refusal(policy, "64:ff9b::8.8.8.8") == nil)
        #expect(try refusal(policy, "64:ff9b::10.0.0.1") == .address(purpose: "private use"))
        #expect(try refusal(policy, "2a00:1::127.0.0.1") == .address(purpose: "loopback"))
        #expect(TranslationPrefix("64:ff9b::/95") == nil)
        #expect(TranslationPrefix("10.0.0.0/32") == nil)
    }

    @Test func addressIsReadFromASocketAddress() throws {
        var four = sockaddr_in()
        four.sin_family = sa_family_t(AF_INET)
        four.sin_port = UInt16(8080).bigEndian
        four.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        withUnsafePointer(to: &four) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                #expect(IPAddress(address, length: MemoryLayout<sockaddr_in>.size) == IPAddress("127.0.0.1"))
                #expect(IPAddress(address, length: 4) == nil)
                #expect(IPAddress.port(address) == 8080)
            }
        }
        var six = sockaddr_in6()
        six.sin6_family = sa_family_t(AF_INET6)
        inet_pton(AF_INET6, "fe80::1", &six.sin6_addr)
        withUnsafePointer(to: &six) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                #expect(IPAddress(address, length: MemoryLayout<sockaddr_in6>.size)?.description == "fe80::1")
                #expect(IPAddress(address, length: MemoryLayout<sockaddr_in>.size) == nil)
            }
        }
        var local = sockaddr(sa_family: sa_family_t(AF_UNIX), sa_data: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0))
        #expect(IPAddress(&local, length: MemoryLayout<sockaddr>.size) == nil)
    }
}

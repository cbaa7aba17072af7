import Glibc
import SystemIO
import Testing

@Suite("Addresses and blocks are parsed strictly and compared by their numbers") struct IPAddressTests {
    @Test(arguments: ["127.0.0.1", "255.255.255.255", "0.0.0.0", "10.100.99.9", "::1", "2001:db8::1", "fe80::1:2:3"])
    func anAddressRoundTripsThroughText(text: String) {
        #expect(IPAddress(text)?.description == text)
    }

    @Test(arguments: ["", "1.2.3", "1.2.3.4.5", "256.1.1.1", "::g", "localhost", "1.2.3.4:80", "[::1]"])
    func otherTextsAreNoAddresses(text: String) {
        #expect(IPAddress(text) == nil)
    }

    @Test func mappedAddressesDifferFromIPv4UntilTheyAreUnmapped() {
        #expect(IPAddress("::ffff:10.0.0.1") != IPAddress("10.0.0.1"))
        #expect(IPAddress("::ffff:10.0.0.1")?.unmapped == IPAddress("10.0.0.1"))
        #expect(IPAddress("::fffe:10.0.0.1")?.isIPv4 == false)
    }

    @Test(arguments: ["1.2.3.4", "2001:db8::1"]) func addressAndPortAreReadFromASocketAddress(text: String) throws {
        let address = try #require(IPAddress(text))
        var storage = sockaddr_storage()
        try withUnsafeMutableBytes(of: &storage) { bytes in
            switch address {
            case .v4(let value):
                var four = sockaddr_in()
                four.sin_family = sa_family_t(AF_INET)
                four.sin_port = in_port_t(8080).bigEndian
                four.sin_addr.s_addr = value.bigEndian
                bytes.storeBytes(of: four, as: sockaddr_in.self)
            case .v6(let high, let low):
                var six = sockaddr_in6()
                six.sin6_family = sa_family_t(AF_INET6)
                six.sin6_port = in_port_t(8080).bigEndian
                withUnsafeMutableBytes(of: &six.sin6_addr) {
                    $0.storeBytes(of: high.bigEndian, as: UInt64.self)
                    $0.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
                }
                bytes.storeBytes(of: six, as: sockaddr_in6.self)
            }
            let pointer = try #require(bytes.baseAddress).assumingMemoryBound(to: sockaddr.self)
            #expect(IPAddress(pointer, length: bytes.count) == address)
            #expect(IPAddress.port(pointer) == 8080)
            // Too short for its family, and of no length at all.
            #expect(IPAddress(pointer, length: 15) == nil)
            #expect(IPAddress(pointer, length: 1) == nil)
            bytes.storeBytes(of: sa_family_t(AF_UNIX), as: sa_family_t.self)
            #expect(IPAddress(pointer, length: bytes.count) == nil)
        }
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("0.0.0.0/0", "1.2.3.4", true),
        ("0.0.0.0/0", "::1", false), ("1.2.3.4", "1.2.3.4", true), ("1.2.3.4", "1.2.3.5", false),
        ("fd00::/8", "fdff::1", true), ("fd00::/8", "fe00::1", false), ("::/0", "1::", true),
        ("2001:db8::/96", "2001:db8::ffff:1", true), ("2001:db8::/96", "2001:db8::1:0:1", false),
        ("2001:db8:0:2::/63", "2001:db8:0:3::1", true), ("2001:db8:0:2::/63", "2001:db8:0:4::1", false),
        ("2001:db8:0:2::/65", "2001:db8:0:2:7fff::1", true), ("2001:db8:0:2::/65", "2001:db8:0:2:8000::1", false),
        ("::1", "::1", true), ("::1", "::2", false), ("2001:db8::/64", "2001:db8::1:0:0:1", true),
    ])
    func blocksContainTheirAddresses(block: String, address: String, isIn: Bool) throws {
        let block = try #require(AddressRange(block))
        #expect(block.contains(try #require(IPAddress(address))) == isIn)
    }

    @Test(arguments: [
        ("::ffff:10.0.0.1", "10.0.0.1/32"), ("::ffff:10.0.0.0/104", "10.0.0.0/8"), ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
        ("::/0", "::/0"), ("2001:db8::/32", "2001:db8::/32"), ("10.0.0.0/8", "10.0.0.0/8"),
    ])
    func blocksOfMappedAddressesAreUnmapped(block: String, unmapped: String) throws {
        #expect(try #require(AddressRange(block)).unmapped.description == unmapped)
    }

    @Test(arguments: [
        "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8", "::/129", "10.0.0.0/8/8", "10.0.0.1/8", "10.0.0.0/+8", "fd00::1/64",
        "2001:db8::1:0:0:0/63", "::ffff:0.0.0.0/95",
    ])
    func otherTextsAreNoBlocks(text: String) {
        #expect(AddressRange(text) == nil)
    }
}

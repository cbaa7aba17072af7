import SystemIO
import Testing

@Suite("IP addresses and networks") struct IPAddressTests {
    @Test(arguments: ["127.0.0.1", "255.255.255.255", "::1", "2001:db8::1", "fe80::1:2:3"])
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

    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("0.0.0.0/0", "1.2.3.4", true),
        ("0.0.0.0/0", "::1", false), ("1.2.3.4", "1.2.3.4", true), ("1.2.3.4", "1.2.3.5", false),
        ("fd00::/8", "fdff::1", true), ("fd00::/8", "fe00::1", false), ("::/0", "1::", true),
        ("2001:db8::/96", "2001:db8::ffff:1", true), ("2001:db8::/96", "2001:db8::1:0:1", false),
        ("::1", "::1", true), ("::1", "::2", false), ("2001:db8::/64", "2001:db8::1:0:0:1", true),
    ])
    func blocksContainTheirAddresses(block: String, address: String, isIn: Bool) throws {
        let block = try #require(AddressRange(block))
        #expect(block.contains(try #require(IPAddress(address))) == isIn)
    }

    @Test(arguments: ["10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8", "::/129", "10.0.0.0/8/8", "10.0.0.1/8"])
    func otherTextsAreNoBlocks(text: String) {
        #expect(AddressRange(text) == nil)
    }
}

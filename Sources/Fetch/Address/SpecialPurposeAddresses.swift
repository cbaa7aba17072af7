package import SystemIO

/// The addresses that do not belong to an ordinary host on the public internet.
///
/// Covers all blocks of IANA's IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890), even those marked as globally
/// reachable, because no public origin uses them. Also covers multicast, blocks that left a registry but that some networks
/// still route, and addresses of cloud platforms within public blocks.
package enum SpecialPurposeAddresses {
    /// Returns the purpose of a special address, for the log; nil for an ordinary public address.
    package static func purpose(of address: IPAddress) -> String? {
        if let block = blocks.first(where: { $0.range.contains(address) }) { return block.purpose }
        guard case .v6(let high, let low) = address else { return nil }
        // RFC 4291 section 2.4: IANA assigns global unicast addresses from 2000::/3 only.
        if high >> 61 != 0b001 { return "not global unicast" }
        // RFC 5214 section 6.1: an interface identifier of ::[02]00:5efe:a.b.c.d tunnels to its embedded IPv4 address.
        if (low >> 32) & 0xfdff_ffff == 0x0000_5efe { return "ISATAP" }
        return nil
    }

    static let blocks: [(range: AddressRange, purpose: String)] = rows.compactMap { row in
        AddressRange(row.0).map { ($0, row.1) }
    }

    static let rows: [(String, String)] = [
        // IANA IPv4 Special-Purpose Address Registry.
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private use"),
        ("100.64.0.0/10", "shared address space (CGNAT)"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private use"),
        ("192.0.0.0/24", "IETF protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.31.196.0/24", "AS112"),
        ("192.52.193.0/24", "AMT"),
        ("192.88.99.0/24", "6to4 relay anycast"),
        ("192.168.0.0/16", "private use"),
        ("192.175.48.0/24", "AS112"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("240.0.0.0/4", "reserved, broadcast"),
        // RFC 5771.
        ("224.0.0.0/4", "multicast"),
        // The virtual public address of Azure's host platform: a metadata service in public address space.
        ("168.63.129.16", "platform service"),

        // IANA IPv6 Special-Purpose Address Registry.
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("::ffff:0:0/96", "IPv4-mapped"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64, local use"),
        ("100::/64", "discard only"),
        ("100:0:0:1::/64", "dummy prefix"),
        // Teredo, benchmarking, AMT, AS112, ORCHID, drone identifiers and future assignments.
        ("2001::/23", "IETF protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("2620:4f:8000::/48", "AS112"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "unique local"),
        ("fe80::/10", "link-local"),
        // RFC 4291 section 2.5.5.1, RFC 2765 section 2.1, RFC 3879, RFC 3701, RFC 4291 section 2.7.
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("fec0::/10", "site-local"),
        ("3ffe::/16", "6bone"),
        ("ff00::/8", "multicast"),
    ]
}

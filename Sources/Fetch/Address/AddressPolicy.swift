internal import SystemIO

/// The reason why an address may not be connected to.
package enum AddressRefusal: Hashable, Sendable {
    /// The address is special, such as loopback, private or link-local. The purpose is for the log.
    case address(purpose: String)
    /// The port is not one of the allowed ports.
    case port(Int, allowed: PortSet)
    /// This process itself listens on the address and port.
    case itself
}

/// The rules for the addresses and ports that may be connected to.
///
/// A pure value: it performs no DNS lookups. The transfer checks the address just before it connects, so a second lookup cannot
/// return an address that was not checked.
package struct AddressPolicy: Sendable {
    /// The ports that may be connected to, even at addresses that an exception allows.
    let ports: PortSet
    /// The special addresses that may be connected to.
    var exceptions: [AddressException] = []
    /// The NAT64 prefixes of this network. An address in one of these prefixes is judged by its embedded IPv4 address.
    /// Addresses in other NAT64 prefixes are refused.
    var translationPrefixes: [TranslationPrefix] = []

    /// Returns why a fetch of `url` may not connect to `address` at `port`; nil if it may.
    func refusal(of address: IPAddress, port: Int, for url: WebAddress) -> AddressRefusal? {
        guard ports.contains(port) else { return .port(port, allowed: ports) }
        let address = translationPrefixes.lazy.compactMap { $0.translated(address) }.first ?? address
        if exceptions.contains(where: { $0.covers(address, port: port, host: url.hostName) }) { return nil }
        return SpecialPurposeAddresses.purpose(of: address).map { .address(purpose: $0) }
    }

    /// Returns why `url` may not be fetched, without a DNS lookup; nil if only its host's addresses can still forbid it.
    func refusal(of url: WebAddress) -> AddressRefusal? {
        guard let address = url.hostName.address else {
            return ports.contains(url.port) ? nil : .port(url.port, allowed: ports)
        }
        return refusal(of: address, port: url.port, for: url)
    }
}

/// An entry of `sources.allow_private`: an origin that may be fetched from even if its address is special.
///
/// - `127.0.0.1`, `::1`, `10.0.0.0/8`, `fd00::/8`: addresses, whatever name resolves to them.
/// - `media.internal`, `*.svc.cluster.local`: names, whatever they resolve to. Their DNS is trusted.
/// - An entry may end in `:port` (`10.0.0.7:8080`, `[::1]:8080`, `media.internal:8080`) and then covers only that port.
///
/// An exception does not allow a port that `sources.ports` does not list.
package struct AddressException: Hashable, Sendable, CustomStringConvertible {
    private enum Target: Hashable {
        case range(AddressRange)
        case host(HostGlob)
    }

    private let target: Target
    private let port: Int?
    /// The entry as written.
    package let description: String

    /// Parses an entry. Returns nil if `text` is not a valid entry, or if the last label of a name contains `*`: such a name
    /// would disable the protection.
    package init?(_ text: String) {
        guard case (var name, let port)? = PortSuffix.split(text[...]) else { return nil }
        description = text
        self.port = port
        if name.hasPrefix("["), name.hasSuffix("]") { name = name.dropFirst().dropLast() }
        if let range = AddressRange(String(name)) {
            target = .range(range)
        } else if let glob = HostGlob(String(name)), glob.hasLiteralEnd {
            target = .host(glob)
        } else {
            return nil
        }
    }

    /// Whether the entry covers a connection to `address` and `port` for a URL with this host.
    func covers(_ address: IPAddress, port: Int, host: HostName) -> Bool {
        guard self.port == nil || self.port == port else { return false }
        return switch target {
        case .range(let range): range.contains(address)
        case .host(let glob): glob.matches(host)
        }
    }
}

/// A NAT64 prefix of this network: its addresses embed an IPv4 address (RFC 6052).
package struct TranslationPrefix: Hashable, Sendable, CustomStringConvertible {
    /// The prefix as written.
    package let description: String
    private let range: AddressRange

    /// Parses an IPv6 block of one of the lengths in RFC 6052 section 2.2: 32, 40, 48, 56, 64 or 96.
    package init?(_ text: String) {
        guard let range = AddressRange(text), case .v6 = range.base, Self.lengths.contains(range.prefixLength) else {
            return nil
        }
        description = text
        self.range = range
    }

    private static let lengths = [32, 40, 48, 56, 64, 96]

    /// Returns the IPv4 address embedded in `address`, or nil if `address` is not in this prefix.
    func translated(_ address: IPAddress) -> IPAddress? {
        guard range.contains(address), case .v6(let high, let low) = address else { return nil }
        if range.prefixLength == 96 { return .v4(UInt32(truncatingIfNeeded: low)) }
        // Bits 64 to 71 are zero; the IPv4 address continues after them.
        let bitsInHigh = 64 - range.prefixLength
        let before = bitsInHigh == 0 ? 0 : high & (UInt64.max >> range.prefixLength)
        let behind = (low << 8) >> (32 + bitsInHigh)
        return .v4(UInt32(truncatingIfNeeded: before << (32 - bitsInHigh) | behind))
    }
}

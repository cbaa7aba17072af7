package import SystemIO

/// A prefix that the NAT64 of this network translates: the addresses in it carry an IPv4 address (RFC 6052).
package struct TranslationPrefix: Hashable, Sendable {
    package let range: AddressRange

    /// Reads an IPv6 block with one of the lengths that RFC 6052 section 2.2 knows: 32, 40, 48, 56, 64 or 96.
    package init?(_ text: String) {
        guard let range = AddressRange(text), case .v6 = range.base, Self.lengths.contains(range.prefixLength) else {
            return nil
        }
        self.range = range
    }

    private static let lengths = [32, 40, 48, 56, 64, 96]

    /// The IPv4 address that is reached through `address`; nil where it does not lie in this prefix.
    package func translated(_ address: IPAddress) -> IPAddress? {
        guard range.contains(address), case .v6(let high, let low) = address else { return nil }
        if range.prefixLength == 96 { return .v4(UInt32(truncatingIfNeeded: low)) }
        // Bits 64 to 71 carry nothing: the IPv4 address goes on behind them.
        let bitsInHigh = 64 - range.prefixLength
        let before = bitsInHigh == 0 ? 0 : high & (UInt64.max >> range.prefixLength)
        let behind = (low << 8) >> (32 + bitsInHigh)
        return .v4(UInt32(truncatingIfNeeded: before << (32 - bitsInHigh) | behind))
    }
}

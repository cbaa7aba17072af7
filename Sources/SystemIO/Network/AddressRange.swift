/// A block of addresses, such as `10.0.0.0/8`.
package struct AddressRange: Hashable, Sendable {
    /// The first address of the block.
    package let base: IPAddress
    /// The number of leading bits that are fixed.
    package let prefixLength: Int

    /// Parses `address/bits`, or an address as a block of one. Nil where bits beyond the prefix are set, which is usually a mistake.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else { return nil }
        var length = address.bitWidth
        if parts.count == 2 {
            guard let bits = Int(parts[1]), (0...length).contains(bits), parts[1].first != "+" else { return nil }
            length = bits
        }
        guard Self.masked(address, to: length) == address else { return nil }
        base = address
        prefixLength = length
    }

    /// Whether the address is in the block. IPv4 addresses are in no IPv6 block, and vice versa.
    package func contains(_ address: IPAddress) -> Bool {
        Self.masked(address, to: prefixLength) == base && address.bitWidth == base.bitWidth
    }

    private static func masked(_ address: IPAddress, to length: Int) -> IPAddress {
        switch address {
        case .v4(let value):
            // Swift's smart shift by the full width yields 0.
            .v4(value & (UInt32.max << (32 - length)))
        case .v6(let high, let low):
            .v6(
                high: high & (length >= 64 ? .max : UInt64.max << (64 - length)),
                low: low & (length <= 64 ? 0 : UInt64.max << (128 - length)))
        }
    }
}

extension AddressRange: CustomStringConvertible {
    package var description: String { "\(base)/\(prefixLength)" }
}

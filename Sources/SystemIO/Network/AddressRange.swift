/// A block of addresses, such as `10.0.0.0/8`.
package struct AddressRange: Hashable, Sendable {
    /// The first address of the block.
    package let base: IPAddress
    /// How many of the leading bits are fixed.
    package let prefixLength: Int

    /// Reads `address/bits`, or a lone address as a block of one. Nil where bits beyond the prefix are set: such a text
    /// is more often a slip than a wish.
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

    /// Whether the address lies in the block. An IPv4 address lies in no IPv6 block, nor the other way round.
    package func contains(_ address: IPAddress) -> Bool {
        Self.masked(address, to: prefixLength) == base && address.bitWidth == base.bitWidth
    }

    private static func masked(_ address: IPAddress, to length: Int) -> IPAddress {
        switch address {
        case .v4(let value):
            // A shift by the full width gives 0, as a smart shift does in Swift.
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

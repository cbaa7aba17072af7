/// A block of addresses: `10.0.0.0/8`, `fd00::/8`, or a single address.
struct AddressBlock: Sendable, Hashable {
    private let base: IPAddress
    private let prefix: Int

    /// Parses CIDR notation (RFC 4632, RFC 4291); nil where it is none.
    init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count <= 2, let base = IPAddress(String(parts[0])) else { return nil }
        let width = base.isIPv4 ? 32 : 128
        if parts.count == 2 {
            guard let prefix = Int(parts[1]), (0...width).contains(prefix) else { return nil }
            self.prefix = prefix
        } else {
            prefix = width
        }
        self.base = base
    }

    func contains(_ address: IPAddress) -> Bool {
        guard address.isIPv4 == base.isIPv4 else { return false }
        // Shifting by the whole width gives 0 in Swift, so an empty prefix matches all.
        if base.isIPv4 { return (address.low ^ base.low) >> UInt64(32 - prefix) == 0 }
        let high = (address.high ^ base.high) >> UInt64(max(0, 64 - prefix))
        let low = (address.low ^ base.low) >> UInt64(min(64, 128 - prefix))
        return high == 0 && low == 0
    }
}

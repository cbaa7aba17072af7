/// The unit of per-client limits: an IPv4 address, or the /64 prefix of an IPv6 address, because one machine may use any
/// address in it (RFC 4291 section 2.5.4, RFC 6177).
package struct ClientNetwork: Sendable, Hashable {
    /// The network as 64 bits: an IPv4 address in the low 32 bits, or the high half of an IPv6 address.
    package let number: UInt64
    package let isIPv4: Bool

    package init(_ address: IPAddress) {
        // An IPv4 client counts as the same client on an IPv6 socket.
        let address = address.unmapped
        isIPv4 = address.isIPv4
        switch address {
        case .v4(let value): number = UInt64(value)
        case .v6(let high, _): number = high
        }
    }
}

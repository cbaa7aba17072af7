internal import CLinux
internal import SystemIO

extension IPAddress {
    /// The address of a socket's end; nil for a Unix socket. A mapped IPv4 address is taken as IPv4, so that a client looks the
    /// same on a socket that serves both.
    init?(_ address: clinux_address) {
        switch address.family {
        case 4: self = .v4(UInt32(truncatingIfNeeded: address.low))
        case 6: self = IPAddress.v6(high: address.high, low: address.low).unmapped
        default: return nil
        }
    }
}

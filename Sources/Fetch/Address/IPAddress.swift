package import Glibc

/// An IPv4 or IPv6 address.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes as one number, the first the highest.
    case v4(UInt32)
    /// The sixteen bytes as two numbers, the first bytes in `high`.
    case v6(high: UInt64, low: UInt64)

    /// Four decimal numbers with dots, or an IPv6 address without brackets and without a zone.
    package init?(_ text: String) {
        var four = in_addr()
        var six = in6_addr()
        if inet_pton(AF_INET, text, &four) == 1 {
            self = .v4(UInt32(bigEndian: four.s_addr))
        } else if inet_pton(AF_INET6, text, &six) == 1 {
            self = withUnsafeBytes(of: six) { Self.v6(from: $0) }
        } else {
            return nil
        }
    }

    /// The address in a socket address of `length` bytes; nil for families other than IPv4 and IPv6.
    package init?(_ address: UnsafePointer<sockaddr>, length: Int) {
        let bytes = UnsafeRawBufferPointer(start: address, count: length)
        guard length >= MemoryLayout<sa_family_t>.size else { return nil }
        switch Int32(bytes.loadUnaligned(as: sa_family_t.self)) {
        case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
            self = .v4(UInt32(bigEndian: bytes.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
        case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
            self = withUnsafeBytes(of: bytes.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Self.v6(from: $0) }
        default:
            return nil
        }
    }

    /// The port in a socket address, which is at the same place for IPv4 and IPv6.
    static func port(_ address: UnsafePointer<sockaddr>) -> Int {
        Int(UInt16(bigEndian: UnsafeRawPointer(address).loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
    }

    private static func v6(from bytes: UnsafeRawBufferPointer) -> IPAddress {
        .v6(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// 32 or 128.
    var bitWidth: Int {
        switch self {
        case .v4: 32
        case .v6: 128
        }
    }
}

extension IPAddress: CustomStringConvertible {
    /// Dotted, or as RFC 5952 writes it.
    package var description: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        switch self {
        case .v4(let value):
            var address = in_addr(s_addr: value.bigEndian)
            inet_ntop(AF_INET, &address, &text, socklen_t(text.count))
        case .v6(let high, let low):
            var words = (high.bigEndian, low.bigEndian)
            inet_ntop(AF_INET6, &words, &text, socklen_t(text.count))
        }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

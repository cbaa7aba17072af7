package import Glibc

/// An IPv4 or IPv6 address.
package enum IPAddress: Hashable, Sendable {
    /// The four bytes in network order, the first byte being the most significant.
    case v4(UInt32)
    /// The sixteen bytes in network order, split into two halves.
    case v6(high: UInt64, low: UInt64)

    /// Parses a dotted-decimal IPv4 address, or an IPv6 address without brackets and zone.
    package init?(_ text: String) {
        self.init(terminated: text)
    }

    private init?(terminated text: UnsafePointer<CChar>) {
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

    /// Parses text as ``init(_:)-(String)`` does, without creating a string.
    package init?(_ text: UnsafeRawBufferPointer) {
        // inet_pton(3) needs room for a terminating zero byte. A zero byte in the text would truncate it.
        guard text.count < Self.longestText, !text.contains(0) else { return nil }
        let address = withUnsafeTemporaryAllocation(byteCount: Self.longestText, alignment: 1) { buffer -> IPAddress? in
            buffer.copyMemory(from: text)
            buffer[text.count] = 0
            guard let base = buffer.baseAddress else { return nil }
            return IPAddress(terminated: base.assumingMemoryBound(to: CChar.self))
        }
        guard let address else { return nil }
        self = address
    }

    /// Reads the address from a socket address of `length` bytes; nil for families other than IPv4 and IPv6.
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

    /// Returns the port of a socket address, which has the same offset for IPv4 and IPv6.
    package static func port(_ address: UnsafePointer<sockaddr>) -> Int {
        Int(UInt16(bigEndian: UnsafeRawPointer(address).loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
    }

    private static func v6(from bytes: UnsafeRawBufferPointer) -> IPAddress {
        .v6(
            high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
            low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }

    /// The number of bits of an address: 32 or 128.
    package var bitWidth: Int { isIPv4 ? 32 : 128 }

    package var isIPv4: Bool { if case .v4 = self { true } else { false } }

    /// The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2); any other address unchanged.
    package var unmapped: IPAddress {
        guard case .v6(0, let low) = self, low >> 32 == 0xffff else { return self }
        return .v4(UInt32(truncatingIfNeeded: low))
    }
}

extension IPAddress: CustomStringConvertible {
    /// The dotted-decimal form of IPv4, or the form of RFC 5952 for IPv6.
    package var description: String {
        withUnsafeTemporaryAllocation(byteCount: Self.longestText, alignment: 1) { buffer in
            let count = write(to: buffer)
            return String(decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
        }
    }

    /// The size of a buffer for the text of any address, including the zero byte that inet_ntop(3) appends.
    package static let longestText = Int(INET6_ADDRSTRLEN)

    /// Writes the address as text and returns its length. `buffer` must hold at least ``longestText`` bytes.
    package func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch self {
        case .v4(let value): return Self.writeDotted(value, to: buffer)
        case .v6(let high, let low):
            var words = (high.bigEndian, low.bigEndian)
            let text = buffer.bindMemory(to: CChar.self)
            guard let base = text.baseAddress, inet_ntop(AF_INET6, &words, base, socklen_t(text.count)) != nil else { return 0 }
            return strlen(base)
        }
    }

    /// Avoids inet_ntop(3), which takes a thousand instructions: the access log does this for every request.
    private static func writeDotted(_ value: UInt32, to buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        func put(_ byte: UInt32) {
            buffer[count] = UInt8(truncatingIfNeeded: byte)
            count += 1
        }
        for shift: UInt32 in stride(from: 24, through: 0, by: -8) {
            let part = value >> shift & 0xFF
            if part >= 100 { put(0x30 + part / 100) }
            if part >= 10 { put(0x30 + part / 10 % 10) }
            put(0x30 + part % 10)
            if shift > 0 { put(0x2E) }
        }
        return count
    }
}

// MARK: - Ranges

/// A block of addresses, such as `10.0.0.0/8`.
package struct AddressRange: Hashable, Sendable {
    /// The first address of the block.
    package let base: IPAddress
    /// The number of leading bits that are fixed.
    package let prefixLength: Int

    /// Parses `address/bits`, or a single address. Nil if bits beyond the prefix are set, which is usually a mistake.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = IPAddress(String(parts[0])) else { return nil }
        var length = address.bitWidth
        if parts.count == 2 {
            guard let bits = Int(parts[1]), (0...length).contains(bits), parts[1].first != "+" else { return nil }
            length = bits
        }
        guard Self.masked(address, to: length) == address else { return nil }
        self.init(base: address, prefixLength: length)
    }

    private init(base: IPAddress, prefixLength: Int) {
        self.base = base
        self.prefixLength = prefixLength
    }

    /// The IPv4 block that corresponds to a block of IPv4-mapped IPv6 addresses; any other block unchanged.
    package var unmapped: AddressRange {
        let first = base.unmapped
        // The 96th bit of a mapped address is set, so the base of a prefix of fewer than 96 bits is never a mapped address.
        return AddressRange(base: first, prefixLength: prefixLength - (base.bitWidth - first.bitWidth))
    }

    /// Whether the block contains the address. An IPv6 block contains no IPv4 addresses, and vice versa.
    package func contains(_ address: IPAddress) -> Bool {
        Self.masked(address, to: prefixLength) == base && address.bitWidth == base.bitWidth
    }

    private static func masked(_ address: IPAddress, to length: Int) -> IPAddress {
        switch address {
        case .v4(let value):
            // Swift's smart shift by the full bit width yields 0.
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

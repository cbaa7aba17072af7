internal import CLinux

/// An IPv4 or IPv6 address as a number. An IPv4 address mapped into IPv6 (RFC 4291 section 2.5.5.2) is taken as IPv4,
/// so that a client looks the same on a socket that serves both.
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The address in 128 bits: IPv4 in the low 32.
    let high: UInt64
    let low: UInt64
    /// Whether it is IPv4.
    package let isIPv4: Bool

    private init(high: UInt64, low: UInt64, isIPv4: Bool) {
        self.high = high
        self.low = low
        self.isIPv4 = isIPv4
    }

    /// Parses dotted IPv4 or IPv6 without brackets, port or zone; nil for anything else.
    package init?(_ text: String) {
        var address = clinux_address()
        guard clinux_parse_address(text, &address) == 0 else { return nil }
        self.init(address)
    }

    /// The address of a socket's end; nil for a Unix socket.
    init?(_ address: clinux_address) {
        switch address.family {
        case 4: self.init(high: 0, low: address.low, isIPv4: true)
        case 6:
            let isMapped = address.high == 0 && address.low >> 32 == 0xFFFF
            self.init(high: address.high, low: isMapped ? address.low & 0xFFFF_FFFF : address.low, isIPv4: isMapped)
        default: return nil
        }
    }

    package var description: String {
        withUnsafeTemporaryAllocation(byteCount: Self.longestText, alignment: 1) { buffer in
            let count = write(to: buffer)
            return String(decoding: UnsafeRawBufferPointer(buffer).slice(0..<count), as: UTF8.self)
        }
    }

    /// Bytes that any address's text fits into.
    static let longestText = 46

    /// Writes the address as text into at least ``longestText`` bytes, and returns how many it took.
    func write(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        if isIPv4 { return writeDotted(to: buffer) }
        var address = clinux_address()
        address.family = 6
        address.high = high
        address.low = low
        return clinux_format_address(&address, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
    }

    /// By hand, since the access log does it for every request, and inet_ntop(3) takes a thousand instructions for it.
    private func writeDotted(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        var count = 0
        func put(_ byte: UInt64) {
            buffer[count] = UInt8(truncatingIfNeeded: byte)
            count += 1
        }
        for shift: UInt64 in stride(from: 24, through: 0, by: -8) {
            let part = low >> shift & 0xFF
            if part >= 100 { put(0x30 + part / 100) }
            if part >= 10 { put(0x30 + part / 10 % 10) }
            put(0x30 + part % 10)
            if shift > 0 { put(0x2E) }
        }
        return count
    }
}

/// Lowercase hexadecimal text.
package enum Hex {
    private static let digits = Array("0123456789abcdef".utf8)

    /// Encodes bytes with two digits each.
    package static func encode(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(64)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Encodes a number with all its digits, the most significant first.
    package static func encode(_ number: some FixedWidthInteger & UnsignedInteger) -> String {
        withUnsafeBytes(of: number.bigEndian) { encode($0) }
    }

    /// Decodes `text`; nil for an odd number of digits or characters other than `0…9 a…f`.
    package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(32)
        var high: UInt8?
        for digit in text {
            guard let value = digit.hexDigit, !(UInt8(ascii: "A")...UInt8(ascii: "F")).contains(digit) else { return nil }
            if let first = high {
                bytes.append(first << 4 | value)
                high = nil
            } else {
                high = value
            }
        }
        return high == nil ? bytes : nil
    }
}

extension UInt8 {
    /// The value of a hexadecimal digit in either case.
    package var hexDigit: UInt8? {
        switch self {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): self - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): self - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): self - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

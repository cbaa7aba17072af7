internal import Glibc

/// Comparisons and slices of raw bytes by the rules of HTTP: ASCII, and case-insensitive for names and tokens.
extension UnsafeRawBufferPointer {
    /// Whether these bytes equal `other`.
    func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    /// Whether these bytes equal `other`.
    func equals(_ other: StaticString) -> Bool { equals(other.bytes) }

    /// Whether these bytes equal `other`, ignoring the case of ASCII letters.
    func equalsIgnoringCase(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard count >= 8 else {
            for index in 0..<count where self[index].lowercased != other[index].lowercased { return false }
            return true
        }
        var index = 0
        while true {
            if ByteWord(self, at: index).lowercased != ByteWord(other, at: index).lowercased { return false }
            if index == count - 8 { return true }
            // The last word may overlap the one before it.
            index = Swift.min(index + 8, count - 8)
        }
    }

    /// Whether these bytes equal `other`, ignoring the case of ASCII letters.
    func equalsIgnoringCase(_ other: StaticString) -> Bool { equalsIgnoringCase(other.bytes) }

    /// The bytes in `range`, as a buffer whose indices start at 0.
    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }

    /// These bytes without spaces and tabs at either end (OWS, RFC 9110 section 5.6.3).
    var trimmed: UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return slice(start..<end)
    }

    /// Calls `body` with each trimmed element of a comma-separated list, except empty ones (RFC 9110 section 5.6.1.2). Commas in
    /// quoted strings do not separate elements. `body` returns false to stop.
    func forEachListElement(_ body: (UnsafeRawBufferPointer) -> Bool) {
        var start = 0
        var quoted = false
        var index = 0
        while index <= count {
            let atEnd = index == count
            if !atEnd, self[index] == UInt8(ascii: "\"") { quoted.toggle() }
            if atEnd || (self[index] == UInt8(ascii: ",") && !quoted) {
                let element = slice(start..<index).trimmed
                if !element.isEmpty, !body(element) { return }
                start = index + 1
            }
            index += 1
        }
    }

    /// The decimal number in these bytes; nil without digits, with other characters, or for a number beyond `Int`.
    var decimal: Int? {
        guard !isEmpty, count <= 19 else { return nil }
        var value = 0
        for byte in self {
            guard let digit = byte.digit else { return nil }
            let (scaled, overflowed) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = scaled.addingReportingOverflow(digit)
            if overflowed || carried { return nil }
            value = sum
        }
        return value
    }
}

/// The character classes of HTTP's grammar.
extension UInt8 {
    /// Whether the byte is a `tchar` (RFC 9110 section 5.6.2), of which methods and field names consist.
    var isToken: Bool {
        // One bit per ASCII character.
        let bits: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && bits & (1 << UInt64(self & 63)) != 0
    }

    /// Whether the byte is a visible ASCII character.
    var isVisible: Bool { self > 0x20 && self < 0x7F }

    /// Whether the byte is a space or a tab (OWS, RFC 9110 section 5.6.3).
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// The value of a decimal digit.
    var digit: Int? { self >= 0x30 && self <= 0x39 ? Int(self) - 0x30 : nil }

    /// The value of a hexadecimal digit.
    var hexDigit: Int? {
        if let digit { return digit }
        let letter = self | 0x20
        return letter >= 0x61 && letter <= 0x66 ? Int(letter) - 0x57 : nil
    }

    /// The lowercase letter of an ASCII letter; any other byte unchanged.
    var lowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
}

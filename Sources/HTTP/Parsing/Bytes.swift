internal import Glibc

/// Comparing and trimming raw bytes as HTTP does: ASCII, and case-insensitive where names and tokens are.
extension UnsafeRawBufferPointer {
    /// Whether these bytes are exactly `other`.
    func equals(_ other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        guard let base = baseAddress, let otherBase = other.baseAddress else { return true }
        return memcmp(base, otherBase, count) == 0
    }

    /// Whether these bytes are exactly `other`.
    func equals(_ other: StaticString) -> Bool { equals(other.bytes) }

    /// Whether these bytes are `other` but for the case of ASCII letters.
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

    /// Whether these bytes are `other` but for the case of ASCII letters.
    func equalsIgnoringCase(_ other: StaticString) -> Bool { equalsIgnoringCase(other.bytes) }

    /// The bytes `range` covers, as a buffer of their own that starts at 0.
    func slice(_ range: Range<Int>) -> UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self[range]) }

    /// These bytes without spaces and tabs at either end (OWS, RFC 9110 section 5.6.3).
    var trimmed: UnsafeRawBufferPointer {
        var start = 0
        var end = count
        while start < end, self[start].isBlank { start += 1 }
        while end > start, self[end - 1].isBlank { end -= 1 }
        return slice(start..<end)
    }

    /// Calls `body` with each element of a comma-separated list, trimmed; empty elements are left out
    /// (RFC 9110 section 5.6.1.2). Commas inside quoted strings are not separators. `body` returns false to stop.
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

    /// The number these bytes spell in decimal: digits only, at least one, and no overflow.
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

/// The character classes of HTTP's grammar.
extension UInt8 {
    /// `tchar` of RFC 9110 section 5.6.2: what methods and field names are made of.
    var isToken: Bool {
        // One bit for each of the 128 ASCII characters.
        let bits: UInt64 = self < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return self < 128 && bits & (1 << UInt64(self & 63)) != 0
    }

    /// A visible ASCII character.
    var isVisible: Bool { self > 0x20 && self < 0x7F }

    /// A space or a tab (OWS, RFC 9110 section 5.6.3).
    var isBlank: Bool { self == 0x20 || self == 0x09 }

    /// The value of a decimal digit.
    var digit: Int? { self >= 0x30 && self <= 0x39 ? Int(self) - 0x30 : nil }

    /// The value of a hexadecimal digit.
    var hexDigit: Int? {
        if let digit { return digit }
        let letter = self | 0x20
        return letter >= 0x61 && letter <= 0x66 ? Int(letter) - 0x57 : nil
    }

    /// An ASCII letter in lower case; any other byte as it is.
    var lowercased: UInt8 { self >= 0x41 && self <= 0x5A ? self | 0x20 : self }
}

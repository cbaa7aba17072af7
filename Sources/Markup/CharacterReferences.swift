/// Character references in markup: the five XML names, and numbers that mean the same in XML and HTML. Others stay unchanged.
package enum CharacterReferences {
    private static let names = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]

    /// The names that need no semicolon (HTML standard, section 13.5).
    private static let namesWithoutSemicolon = Set(
        """
        AElig AMP Aacute Acirc Agrave Aring Atilde Auml COPY Ccedil ETH Eacute Ecirc Egrave Euml GT Iacute Icirc Igrave \
        Iuml LT Ntilde Oacute Ocirc Ograve Oslash Otilde Ouml QUOT REG THORN Uacute Ucirc Ugrave Uuml Yacute aacute \
        acirc acute aelig agrave amp aring atilde auml brvbar ccedil cedil cent copy curren deg divide eacute ecirc \
        egrave eth euml frac12 frac14 frac34 gt iacute icirc iexcl igrave iquest iuml laquo lt macr micro middot nbsp \
        not ntilde oacute ocirc ograve ordf ordm oslash otilde ouml para plusmn pound quot raquo reg sect shy sup1 sup2 \
        sup3 szlig thorn times uacute ucirc ugrave uml uuml yacute yen yuml
        """.split(separator: " ").map { Array($0.utf8) })

    /// Replaces references with their characters. Anything else stays unchanged.
    package static func decode(_ bytes: some Collection<UInt8>) -> String {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.contains("&") else { return text }
        var decoded = ""
        var rest = text[...]
        while let start = rest.firstIndex(of: "&") {
            decoded += rest[..<start]
            rest = rest[start...].dropFirst()
            // The longest reference is `#x10FFFF`.
            let name = rest.prefix(9).prefix { $0 != ";" }
            if rest.dropFirst(name.count).first == ";", let character = character(name) {
                decoded += character
                rest = rest.dropFirst(name.count + 1)
            } else {
                decoded += "&"
            }
        }
        return decoded + rest
    }

    /// Whether an attribute's value from ``decode(_:)`` still contains references that browsers decode (HTML standard, sections
    /// 13.2.5.72 to 13.2.5.80), such as `&eacute;`, `&eacute` before a dot, and `&#128;`. It may err on the side of true.
    static func remain(in decoded: String) -> Bool {
        decoded.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).dropFirst().contains { rest in
            if rest.first == UInt8(ascii: "#") { return true }
            let name = rest.prefix { isLetter($0) || (0x30...0x39).contains($0) }
            switch rest.dropFirst(name.count).first {
            case UInt8(ascii: ";"): return name.first.map(isLetter) == true
            case UInt8(ascii: "="): return false
            default: return namesWithoutSemicolon.contains(Array(name))
            }
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    private static func character(_ name: Substring) -> String? {
        guard name.hasPrefix("#") else { return names[String(name)] }
        let digits = name.dropFirst()
        let number =
            digits.first == "x" || digits.first == "X" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        // `UInt32` accepts a plus sign, but references may not contain it. HTML maps 0 and 0x80 to 0x9F to other characters.
        guard let number, number != 0, !(0x80...0x9F).contains(number), !digits.contains("+") else { return nil }
        return Unicode.Scalar(number).map { String($0) }
    }
}

/// The normalization of links in pages.
package enum LinkText {
    /// Normalizes the decoded value of an attribute as browsers do before resolving it (URL standard, section 4.4): removes
    /// surrounding spaces and all tabs and line breaks, and replaces the backslashes before a query with slashes.
    ///
    /// - Returns: Nil if browsers may see another link, because the value contains bytes that are not UTF-8, a character
    ///   reference that was not decoded, or a placeholder of a template or a lazy loader, such as `{width}` and `<?= $url ?>`.
    package static func normalize(_ value: String) -> String? {
        guard !value.unicodeScalars.contains(where: { ["\u{FFFD}", "{", "<"].contains($0) }),
            !CharacterReferences.remain(in: value)
        else { return nil }
        var link = String.UnicodeScalarView()
        var isBeforeQuery = true
        for scalar in trimmed(value.unicodeScalars) where !["\t", "\n", "\r"].contains(scalar) {
            if scalar == "?" || scalar == "#" { isBeforeQuery = false }
            link.append(isBeforeQuery && scalar == "\\" ? "/" : scalar)
        }
        return String(link)
    }

    /// Percent-encodes characters that a URL must not contain after its host (RFC 3986). Foundation would also encode the percent
    /// signs of existing escapes, such as `%20` in `a%20é.gif`.
    package static func encode(_ link: String) -> String {
        let bytes = Array(link.utf8)
        let isDelimiter = { (byte: UInt8) in "/?#".utf8.contains(byte) }
        var start = 0
        if let first = bytes.firstIndex(where: isDelimiter), first == 0 || bytes[first - 1] == UInt8(ascii: ":"),
            bytes[first...].starts(with: "//".utf8)
        {
            start = bytes[(first + 2)...].firstIndex(where: isDelimiter) ?? bytes.endIndex
        }
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded = Array(bytes[..<start])
        for index in start..<bytes.count {
            let byte = bytes[index]
            let next = bytes[(index + 1)...].prefix(2)
            let isTriplet = byte == UInt8(ascii: "%") && next.count == 2 && next.allSatisfy(isHexDigit)
            if isTriplet || byte.isASCIILetter || "0123456789-._~!$&'()*+,;=:@/?#".utf8.contains(byte) {
                encoded.append(byte)
            } else {
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static func isHexDigit(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte.lowercasedASCII)
    }

    /// Returns the text without surrounding spaces and control characters.
    private static func trimmed(_ text: String.UnicodeScalarView) -> Substring.UnicodeScalarView {
        let rest = text.drop { $0.value <= 0x20 }
        guard let last = rest.lastIndex(where: { $0.value > 0x20 }) else { return rest }
        return rest[...last]
    }
}

/// Character references in markup: the five names of XML, and numbers. Others stay as they are.
package enum CharacterReferences {
    private static let names = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]

    /// Replaces references by their characters. Anything else stays unchanged.
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

    /// Whether a text from ``decode(_:)`` still has a reference with a name, such as `&eacute;`. Most of them are characters to
    /// browsers.
    fileprivate static func remain(in decoded: String) -> Bool {
        decoded.utf8.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false).dropFirst().contains { rest in
            let name = rest.prefix { isLetter($0) || (0x30...0x39).contains($0) }
            return name.first.map(isLetter) == true && rest.dropFirst(name.count).first == UInt8(ascii: ";")
        }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    private static func character(_ name: Substring) -> String? {
        guard name.hasPrefix("#") else { return names[String(name)] }
        let digits = name.dropFirst()
        let number =
            digits.first == "x" || digits.first == "X" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return number.flatMap(Unicode.Scalar.init).map { String($0) }
    }
}

/// The text of links in pages.
package enum LinkText {
    /// Brings the decoded value of an attribute to the text that browsers resolve (URL standard, section 4.4): without surrounding
    /// spaces, tabs and line breaks, and with slashes in place of the backslashes before a query.
    ///
    /// - Returns: Nil if browsers may see another link: the value has bytes of another encoding than UTF-8, or a character reference
    ///   that was not decoded.
    package static func normalize(_ value: String) -> String? {
        guard !value.unicodeScalars.contains("\u{FFFD}"), !CharacterReferences.remain(in: value) else { return nil }
        var link = String.UnicodeScalarView()
        var isBeforeQuery = true
        for scalar in trimmed(value.unicodeScalars) where !["\t", "\n", "\r"].contains(scalar) {
            if scalar == "?" || scalar == "#" { isBeforeQuery = false }
            link.append(isBeforeQuery && scalar == "\\" ? "/" : scalar)
        }
        return String(link)
    }

    /// The text without surrounding spaces and control characters.
    private static func trimmed(_ text: String.UnicodeScalarView) -> Substring.UnicodeScalarView {
        let rest = text.drop { $0.value <= 0x20 }
        guard let last = rest.lastIndex(where: { $0.value > 0x20 }) else { return rest }
        return rest[...last]
    }
}

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

/// The value of a `srcset` (HTML standard, section 4.8.4.2.2).
package enum SourceSet {
    /// Returns the URLs of the candidates, in order.
    package static func links(_ text: String) -> [String] {
        var links: [String] = []
        _ = replaceLinks(in: text) { link in
            links.append(link)
            return nil
        }
        return links
    }

    /// Returns the text with its links replaced. Everything else stays, even invalid syntax.
    ///
    /// - Parameter replacement: Returns the new link of a candidate; nil if the link stays.
    package static func replaceLinks(in text: String, _ replacement: (String) -> String?) -> String {
        var output = String.UnicodeScalarView()
        var rest = text.unicodeScalars[...]
        func take(_ count: Int) {
            output += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        while true {
            take(rest.prefix { isSpace($0) || $0 == "," }.count)
            // A URL extends to a space, and may contain commas.
            let token = rest.prefix { !isSpace($0) }
            guard let last = token.lastIndex(where: { $0 != "," }) else {
                output += rest
                return String(output)
            }
            let link = token[...last]
            output += (replacement(String(link)) ?? String(link)).unicodeScalars
            rest = rest[link.endIndex...]
            if rest.first == "," { continue }
            // Descriptors of width or density. A comma within parentheses belongs to them.
            var isInParentheses = false
            take(
                rest.prefix { scalar in
                    if scalar == "(" { isInParentheses = true }
                    if scalar == ")" { isInParentheses = false }
                    return scalar != "," || isInParentheses
                }.count)
        }
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        [" ", "\t", "\n", "\u{0C}", "\r"].contains(scalar)
    }
}

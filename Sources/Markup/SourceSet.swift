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
    static func replaceLinks(in text: String, _ replacement: (String) -> String?) -> String {
        // Appending to a view of a string copies the string each time.
        let bytes = Array(text.utf8)
        var output: [UInt8] = []
        var rest = bytes[...]
        func take(_ count: Int) {
            output += rest.prefix(count)
            rest = rest.dropFirst(count)
        }
        while true {
            take(rest.prefix { $0.isHTMLSpace || $0 == UInt8(ascii: ",") }.count)
            // A URL extends to a space, and may contain commas.
            let token = rest.prefix { !$0.isHTMLSpace }
            guard let last = token.lastIndex(where: { $0 != UInt8(ascii: ",") }) else {
                output += rest
                return String(decoding: output, as: UTF8.self)
            }
            let link = String(decoding: token[...last], as: UTF8.self)
            output += (replacement(link) ?? link).utf8
            rest = rest[(last + 1)...]
            if rest.first == UInt8(ascii: ",") { continue }
            // Descriptors of width or density. A comma within parentheses belongs to them.
            var isInParentheses = false
            take(
                rest.prefix { byte in
                    if byte == UInt8(ascii: "(") { isInParentheses = true }
                    if byte == UInt8(ascii: ")") { isInParentheses = false }
                    return byte != UInt8(ascii: ",") || isInParentheses
                }.count)
        }
    }
}

/// Untrusted text in the pages of this server, which are UTF-8. Visitors read it, so it must be valid and must not mislead.
enum HTMLText {
    /// Escapes everything that could end a quoted attribute or begin an element (HTML standard, section 13.1.2), and replaces
    /// control characters.
    static func escape(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case _ where isControl(scalar): escaped += "\u{fffd}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }

    /// Terminal controls, and bidirectional controls, which would change the order of the text around them.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x202a...0x202e, 0x2066...0x2069, 0x200e, 0x200f, 0x061c: true
        default: scalar.properties.generalCategory == .control
        }
    }
}

/// Text that goes into HTML.
enum HTMLText {
    /// The text with everything escaped that could end an attribute in quotes or begin an element (HTML standard,
    /// section 13.1.2), and without characters that control something.
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

    /// Controls of terminals and of the direction of text: a name must not change what stands beside it.
    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x202a...0x202e, 0x2066...0x2069, 0x200e, 0x200f, 0x061c: true
        default: scalar.properties.generalCategory == .control
        }
    }
}

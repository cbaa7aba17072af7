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

    private static func character(_ name: Substring) -> String? {
        guard name.hasPrefix("#") else { return names[String(name)] }
        let digits = name.dropFirst()
        let number =
            digits.first == "x" || digits.first == "X" ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return number.flatMap(Unicode.Scalar.init).map { String($0) }
    }
}

/// This service's name in `CDN-Loop` (RFC 8586): fetches carry it, so a request that carries it comes of our own fetch.
struct LoopToken: Sendable {
    private let name: String

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = name.lowercased()
    }

    /// Whether the name is among those of the fields' values. Parameters are passed over, quoted commas and all.
    func occurs(in values: [String]) -> Bool {
        values.contains { value in
            Self.elements(value).contains { $0.lowercased() == name }
        }
    }

    /// The list's elements (RFC 9110 section 5.6.1) without parameters and blanks.
    private static func elements(_ value: String) -> [String] {
        var elements: [[UInt8]] = [[]]
        var isQuoted = false
        var isEscaped = false
        var isParameter = false
        for byte in value.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isQuoted {
                if byte == UInt8(ascii: "\\") { isEscaped = true }
                if byte == UInt8(ascii: "\"") { isQuoted = false }
            } else {
                switch byte {
                case UInt8(ascii: "\""): isQuoted = true
                case UInt8(ascii: ";"): isParameter = true
                case UInt8(ascii: ","):
                    isParameter = false
                    elements.append([])
                case UInt8(ascii: " "), UInt8(ascii: "\t"): break
                default: if !isParameter { elements[elements.count - 1].append(byte) }
                }
            }
        }
        return elements.map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Parses fields whose values are lists with parameters (RFC 9110 sections 5.6.1 and 5.6.6).
enum ListField {
    /// An element: the text before its first semicolon, and its parameters, all without blanks and in lower case.
    struct Element: Equatable {
        var name: String
        var parameters: [String]
    }

    /// The elements of the values of all fields of one name. Separators in quotes do not separate.
    static func elements(_ values: [String]) -> [Element] {
        values.flatMap { value in
            split(value[...], at: ",").map { element in
                let parts = split(element, at: ";").map { $0.filter { $0 != " " && $0 != "\t" }.lowercased() }
                return Element(name: parts[0], parameters: Array(parts.dropFirst()))
            }
        }
    }

    private static func split(_ text: Substring, at separator: Character) -> [Substring] {
        var parts: [Substring] = []
        var start = text.startIndex
        var isQuoted = false
        var isEscaped = false
        for index in text.indices {
            let character = text[index]
            if isEscaped {
                isEscaped = false
            } else if isQuoted && character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == separator && !isQuoted {
                parts.append(text[start..<index])
                start = text.index(after: index)
            }
        }
        return parts + [text[start...]]
    }
}

/// This service's name in `CDN-Loop` (RFC 8586). Fetches carry it, so a request that carries it was caused by a fetch of this
/// service.
struct LoopToken: Sendable {
    private let name: String

    /// - Parameter name: A token or a host.
    init(_ name: String) {
        self.name = name.lowercased()
    }

    /// Whether an element of the fields' values has the name.
    func occurs(in values: [String]) -> Bool {
        ListField.elements(values).contains { $0.name == name }
    }
}

/// A field value with parameters, such as `form-data; name="file"; filename="a.gif"` (RFC 9110 section 5.6.6).
struct FieldParameters: Equatable {
    /// What stands before the first semicolon, in lower case.
    let value: String
    /// The parameters by their names in lower case; of a name that comes twice the first.
    let parameters: [String: String]

    init(_ text: String) {
        var rest = Substring(text)
        value = Self.takeUntilSemicolon(&rest).lowercased()
        var parameters: [String: String] = [:]
        while !rest.isEmpty {
            rest = rest.drop { $0 == ";" || $0 == " " || $0 == "\t" }
            let name = rest.prefix { $0 != "=" && $0 != ";" }
            rest = rest.dropFirst(name.count)
            guard rest.first == "=" else { continue }
            rest = rest.dropFirst()
            let value = rest.first == "\"" ? Self.takeQuoted(&rest) : Self.takeUntilSemicolon(&rest)
            let key = name.trimmingSpaces.lowercased()
            if parameters[key] == nil { parameters[key] = value }
        }
        self.parameters = parameters
    }

    private static func takeUntilSemicolon(_ rest: inout Substring) -> String {
        let taken = rest.prefix { $0 != ";" }
        rest = rest.dropFirst(taken.count)
        return taken.trimmingSpaces
    }

    /// A quoted string. A backslash escapes a quote or a backslash only: names of files may hold others as they are.
    private static func takeQuoted(_ rest: inout Substring) -> String {
        rest = rest.dropFirst()
        var value = ""
        while let character = rest.popFirst(), character != "\"" {
            if character == "\\", let escaped = rest.first, escaped == "\"" || escaped == "\\" {
                value.append(rest.removeFirst())
            } else {
                value.append(character)
            }
        }
        return value
    }
}

extension Substring {
    /// Without spaces and tabs at either end.
    fileprivate var trimmingSpaces: String {
        var text = drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

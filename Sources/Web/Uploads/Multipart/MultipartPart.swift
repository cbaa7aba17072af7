/// The head of one part of a form (RFC 7578 section 4).
struct MultipartPart: Equatable {
    /// The name of the form's field.
    let name: String
    /// Whether the part is a file: it has a file name, which may be empty. Browsers send an empty one if no file was selected.
    let isFile: Bool

    /// Parses the lines of a part's head.
    ///
    /// - Throws: ``Problem`` if the part has no name, or has a transfer encoding, which is deprecated (RFC 7578 section 4.7).
    init(head: String) throws(Problem) {
        var disposition: FieldParameters?
        for line in head.split(separator: "\r\n") {
            guard let colon = line.firstIndex(of: ":") else { throw .badRequest("A part of the form has a malformed head.") }
            let text = String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
            switch line[..<colon].lowercased() {
            case "content-disposition": disposition = FieldParameters(text)
            case "content-transfer-encoding":
                guard ["binary", "8bit", "7bit"].contains(FieldParameters(text).value) else {
                    throw .badRequest("A part of the form has a transfer encoding, which is not supported.")
                }
            default: break
            }
        }
        guard let disposition, disposition.value == "form-data", let name = disposition.parameters["name"] else {
            throw .badRequest("A part of the form has no name.")
        }
        self.name = name
        isFile = disposition.parameters["filename"] != nil || disposition.parameters["filename*"] != nil
    }
}

/// A field value with parameters, such as `form-data; name="file"; filename="a.gif"` (RFC 9110 section 5.6.6).
struct FieldParameters: Equatable {
    /// The text before the first semicolon, in lower case.
    let value: String
    /// The parameters by their names in lower case. Of repeated parameters, the first one counts.
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

    /// Takes a quoted string. A backslash escapes only a quote or another backslash: file names may contain single ones.
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
    /// The text without spaces and tabs at both ends.
    fileprivate var trimmingSpaces: String {
        var text = drop { $0 == " " || $0 == "\t" }
        while let last = text.last, last == " " || last == "\t" { text.removeLast() }
        return String(text)
    }
}

/// Reads Swift source far enough to tell which types a file declares and which identifiers it uses.
///
/// Comments and string literals are skipped; interpolations in literals count as code. Regular expression literals are not
/// known to it.
struct SwiftScanner {
    /// An identifier, a keyword, or a brace.
    struct Token: Equatable {
        var text: String
        /// The number of open braces before the token.
        var depth: Int
        /// Whether a dot precedes it, as in `Outer.Inner` and `.case`.
        var isMember: Bool
    }

    private let bytes: [UInt8]
    private var position = 0
    private var depth = 0
    private var tokens: [Token] = []

    private init(_ text: String) {
        bytes = Array(text.utf8)
    }

    /// The tokens of a file, in order.
    static func tokens(of text: String) -> [Token] {
        var scanner = SwiftScanner(text)
        scanner.readCode(untilParenthesis: false)
        return scanner.tokens
    }

    /// Reads code to the end of the file, or to the parenthesis that closes an interpolation.
    private mutating func readCode(untilParenthesis: Bool) {
        var parentheses = 0
        while position < bytes.count {
            let byte = bytes[position]
            switch byte {
            case UInt8(ascii: "/") where starts(with: "//"): skip(past: "\n")
            case UInt8(ascii: "/") where starts(with: "/*"): skipBlockComment()
            case UInt8(ascii: "\""), UInt8(ascii: "#"):
                if !readLiteral() { position += 1 }
            case UInt8(ascii: "{"):
                tokens.append(Token(text: "{", depth: depth, isMember: false))
                depth += 1
                position += 1
            case UInt8(ascii: "}"):
                depth -= 1
                tokens.append(Token(text: "}", depth: depth, isMember: false))
                position += 1
            case UInt8(ascii: "("):
                parentheses += 1
                position += 1
            case UInt8(ascii: ")"):
                position += 1
                if untilParenthesis && parentheses == 0 { return }
                parentheses -= 1
            case _ where Self.isIdentifierHead(byte): readIdentifier()
            // A number, with its letters: `0x1F`, `1e9`.
            case UInt8(ascii: "0")...UInt8(ascii: "9"):
                while position < bytes.count, Self.isIdentifierPart(bytes[position]) { position += 1 }
            default: position += 1
            }
        }
    }

    private mutating func readIdentifier() {
        let start = position
        while position < bytes.count, Self.isIdentifierPart(bytes[position]) { position += 1 }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        let isMember = start > 0 && bytes[start - 1] == UInt8(ascii: ".")
        tokens.append(Token(text: text, depth: depth, isMember: isMember))
    }

    /// Reads a string literal of any kind. Returns false where none begins here.
    private mutating func readLiteral() -> Bool {
        let hashes = bytes[position...].prefix { $0 == UInt8(ascii: "#") }.count
        let quote = position + hashes
        guard quote < bytes.count, bytes[quote] == UInt8(ascii: "\"") else { return false }
        position = quote
        let isLong = starts(with: "\"\"\"")
        position += isLong ? 3 : 1
        let suffix = String(repeating: "#", count: hashes)
        let end = (isLong ? "\"\"\"" : "\"") + suffix
        let escape = "\\" + suffix
        while position < bytes.count {
            if starts(with: escape + "(") {
                position += escape.utf8.count + 1
                readCode(untilParenthesis: true)
            } else if starts(with: escape) {
                position += escape.utf8.count + 1
            } else if starts(with: end) {
                position += end.utf8.count
                return true
            } else {
                position += 1
            }
        }
        return true
    }

    private mutating func skipBlockComment() {
        var open = 0
        repeat {
            if starts(with: "/*") {
                open += 1
                position += 2
            } else if starts(with: "*/") {
                open -= 1
                position += 2
            } else {
                position += 1
            }
        } while open > 0 && position < bytes.count
    }

    private mutating func skip(past end: String) {
        while position < bytes.count, !starts(with: end) { position += 1 }
    }

    private func starts(with text: String) -> Bool {
        bytes[min(position, bytes.count)...].starts(with: text.utf8)
    }

    private static func isIdentifierHead(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte | 0x20) || byte == UInt8(ascii: "_") || byte >= 0x80
    }

    private static func isIdentifierPart(_ byte: UInt8) -> Bool {
        isIdentifierHead(byte) || (0x30...0x39).contains(byte)
    }
}

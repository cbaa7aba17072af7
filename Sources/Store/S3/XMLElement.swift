internal import SystemIO

/// An element of an XML document, as far as S3 uses XML: elements, text and the predefined references.
///
/// Attributes and comments are skipped. A document type declaration is refused, so that there are no entities to expand; nesting and
/// size are bounded.
struct XMLElement: Equatable {
    /// The name, without a namespace prefix.
    let name: String
    var children: [XMLElement] = []
    /// The text directly within the element.
    var text = ""

    init(name: String) {
        self.name = name
    }

    /// Reads a document in UTF-8; nil if it is not well formed or uses what this reader refuses.
    init?(document: [UInt8]) {
        var reader = XMLReader(document)
        guard let root = reader.readDocument() else { return nil }
        self = root
    }

    func text(_ name: String) -> String? {
        children.first { $0.name == name }?.text
    }
}

private struct XMLReader {
    private let bytes: [UInt8]
    private var position = 0

    /// Deeper documents are refused. S3 nests five levels.
    private static let maxDepth = 32

    init(_ bytes: [UInt8]) {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        self.bytes = bytes.starts(with: mark) ? Array(bytes[mark.count...]) : bytes
    }

    mutating func readDocument() -> XMLElement? {
        guard skipMisc(), let root = readElement(depth: 0), skipMisc(), position == bytes.count else { return nil }
        return root
    }

    /// Skips space, comments and processing instructions (the XML declaration is read as one). Returns false if one is not closed.
    private mutating func skipMisc() -> Bool {
        while true {
            skipSpace()
            if starts("<?") {
                guard skip(past: "?>") else { return false }
            } else if starts("<!--") {
                guard skip(past: "-->") else { return false }
            } else {
                return true
            }
        }
    }

    /// Reads an element from its `<` on.
    private mutating func readElement(depth: Int) -> XMLElement? {
        guard depth < Self.maxDepth, take("<"), let name = readName() else { return nil }
        guard let isEmpty = skipAttributes() else { return nil }
        var element = XMLElement(name: name.split(separator: ":").last.map { String($0) } ?? name)
        if isEmpty { return element }
        var text: [UInt8] = []
        while position < bytes.count {
            if take("</") {
                guard readName() == name else { return nil }
                skipSpace()
                guard take(">") else { return nil }
                guard let valid = String(validating: text, as: UTF8.self) else { return nil }
                element.text = valid
                return element
            } else if starts("<!--") {
                guard skip(past: "-->") else { return nil }
            } else if starts("<") {
                guard let child = readElement(depth: depth + 1) else { return nil }
                element.children.append(child)
            } else if starts("&") {
                guard let character = readReference() else { return nil }
                text += Array(String(character).utf8)
            } else {
                text.append(bytes[position])
                position += 1
            }
        }
        return nil
    }

    private mutating func readName() -> String? {
        let start = position
        while position < bytes.count, Self.isNameByte(bytes[position]) { position += 1 }
        return start == position ? nil : String(validating: bytes[start..<position], as: UTF8.self)
    }

    /// Skips attributes up to and including `>` or `/>`. Returns whether the element is empty; nil if the tag is malformed.
    private mutating func skipAttributes() -> Bool? {
        while true {
            skipSpace()
            if take("/>") { return true }
            if take(">") { return false }
            guard readName() != nil else { return nil }
            skipSpace()
            guard take("=") else { return nil }
            skipSpace()
            guard position < bytes.count else { return nil }
            let quote = bytes[position]
            guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else { return nil }
            position += 1
            guard let end = bytes[position...].firstIndex(of: quote), !bytes[position..<end].contains(UInt8(ascii: "<")) else {
                return nil
            }
            position = end + 1
        }
    }

    /// Reads `&name;`, `&#10;` or `&#xA;`.
    private mutating func readReference() -> Unicode.Scalar? {
        let start = position + 1
        // The longest reference is `&#1114111;`.
        guard let end = bytes[start...].prefix(10).firstIndex(of: UInt8(ascii: ";")) else { return nil }
        let name = String(decoding: bytes[start..<end], as: UTF8.self)
        position = end + 1
        let predefined: [String: Unicode.Scalar] = ["lt": "<", "gt": ">", "amp": "&", "quot": "\"", "apos": "'"]
        if let scalar = predefined[name] { return scalar }
        let value = name.hasPrefix("#x") ? UInt32(name.dropFirst(2), radix: 16) : UInt32(name.dropFirst())
        guard name.hasPrefix("#"), let value, value != 0 else { return nil }
        return Unicode.Scalar(value)
    }

    // MARK: Bytes

    private func starts(_ text: String) -> Bool {
        bytes[position...].starts(with: text.utf8)
    }

    private mutating func take(_ text: String) -> Bool {
        guard starts(text) else { return false }
        position += text.utf8.count
        return true
    }

    private mutating func skip(past end: String) -> Bool {
        guard let range = bytes[position...].firstRange(of: Array(end.utf8)) else { return false }
        position = range.upperBound
        return true
    }

    private mutating func skipSpace() {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte >= 0x80 || ":_-.".utf8.contains(byte)
    }
}

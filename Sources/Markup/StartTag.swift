/// A start tag as a page contains it.
package struct StartTag: Equatable {
    /// An attribute. Of several attributes with the same name, the first applies (HTML standard, section 13.2.5.33).
    package struct Attribute: Equatable {
        /// The name in lower case.
        package let name: String
        /// The attribute as the page contains it, from its name to the end of its value.
        package let text: ArraySlice<UInt8>
        /// The value without quotes; character references are not decoded.
        package let rawValue: ArraySlice<UInt8>

        /// The value with decoded character references.
        package var value: String { CharacterReferences.decode(rawValue) }
    }

    /// The name in lower case.
    package let name: String
    package let attributes: [Attribute]
    package let isSelfClosing: Bool
    /// The whole tag, from `<` to `>`.
    package let text: ArraySlice<UInt8>

    /// Returns the attribute with this name in lower case; nil if there is none.
    package subscript(_ name: String) -> Attribute? { attributes.first { $0.name == name } }
}

extension StartTag {
    /// Parses a tag (HTML standard, sections 13.2.5.8 and 13.2.5.32 to 13.2.5.40). End tags are parsed in the same way.
    ///
    /// - Parameters:
    ///   - bytes: Text in which the tag's name begins at `nameStart`.
    ///   - start: The index of `<`.
    /// - Returns: Nil if the text ends within the tag.
    package init?(_ bytes: ArraySlice<UInt8>, from start: Int, nameStart: Int) {
        var index = nameStart
        let nameEnd = bytes[index...].firstIndex { $0.isHTMLSpace || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ">") }
        guard let nameEnd else { return nil }
        name = String(lowercased: bytes[nameStart..<nameEnd])
        index = nameEnd
        var attributes: [Attribute] = []
        while true {
            guard let next = bytes[index...].firstIndex(where: { !$0.isHTMLSpace && $0 != UInt8(ascii: "/") }) else {
                return nil
            }
            if bytes[next] == UInt8(ascii: ">") {
                isSelfClosing = next > index && bytes[next - 1] == UInt8(ascii: "/")
                text = bytes[start...next]
                self.attributes = attributes
                return
            }
            guard let attribute = Self.attribute(bytes, at: next) else { return nil }
            attributes.append(attribute)
            index = attribute.text.endIndex
        }
    }

    private static func attribute(_ bytes: ArraySlice<UInt8>, at start: Int) -> Attribute? {
        // An equals sign at the start is part of the name.
        let nameEnd = bytes[(start + 1)...].firstIndex {
            $0.isHTMLSpace || $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: ">") || $0 == UInt8(ascii: "=")
        }
        guard let nameEnd else { return nil }
        let name = String(lowercased: bytes[start..<nameEnd])
        guard let sign = bytes[nameEnd...].firstIndex(where: { !$0.isHTMLSpace }) else { return nil }
        guard bytes[sign] == UInt8(ascii: "=") else {
            return Attribute(name: name, text: bytes[start..<nameEnd], rawValue: bytes[nameEnd..<nameEnd])
        }
        guard let valueStart = bytes[(sign + 1)...].firstIndex(where: { !$0.isHTMLSpace }) else { return nil }
        let quote = bytes[valueStart]
        if quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
            guard let end = bytes[(valueStart + 1)...].firstIndex(of: quote) else { return nil }
            return Attribute(name: name, text: bytes[start...end], rawValue: bytes[(valueStart + 1)..<end])
        }
        guard let end = bytes[valueStart...].firstIndex(where: { $0.isHTMLSpace || $0 == UInt8(ascii: ">") }) else {
            return nil
        }
        return Attribute(name: name, text: bytes[start..<end], rawValue: bytes[valueStart..<end])
    }
}

extension UInt8 {
    /// Whether the byte separates the parts of a tag.
    var isHTMLSpace: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0C || self == 0x0D }

    var isASCIILetter: Bool { (0x61...0x7A).contains(lowercasedASCII) }

    var lowercasedASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}

extension String {
    /// Creates the text with ASCII letters in lower case.
    init(lowercased bytes: some Collection<UInt8>) {
        self.init(decoding: bytes.map(\.lowercasedASCII), as: UTF8.self)
    }
}

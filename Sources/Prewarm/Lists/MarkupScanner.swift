internal import Markup

/// Iterates over the start tags of XML or HTML, and tolerates malformed markup.
///
/// The scanner is meant for finding links: it handles comments, CDATA and the two HTML elements whose content is raw text, and
/// ignores nesting.
struct MarkupScanner: Sequence, IteratorProtocol {
    /// A start tag and the text up to the next tag.
    struct Element: Equatable {
        /// The name in lower case, with its prefix: `image:loc`.
        var name: String
        /// Decoded values by lowercase name. The first of several attributes with the same name wins.
        var attributes: [String: String] = [:]
        /// The decoded text without surrounding spaces.
        var text = ""

        /// The name without its prefix.
        var localName: Substring { name.split(separator: ":").last ?? "" }
    }

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: [UInt8]) {
        bytes = text
    }

    mutating func next() -> Element? {
        while let start = bytes[position...].firstIndex(of: UInt8(ascii: "<")) {
            position = start + 1
            if skip("!--", until: "-->") || skip("![CDATA[", until: "]]>") || skip("!", until: ">") || skip("?", until: ">")
                || skip("/", until: ">")
            {
                continue
            }
            guard position < bytes.count, Self.isLetter(bytes[position]) else { continue }
            guard let tag = StartTag(bytes[...], from: start, nameStart: position) else { break }
            position = tag.text.endIndex
            var element = Element(name: tag.name)
            for attribute in tag.attributes.reversed() { element.attributes[attribute.name] = attribute.value }
            if element.name == "script" || element.name == "style" {
                _ = skip("", until: "</" + element.name)
            } else {
                element.text = readText()
            }
            return element
        }
        position = bytes.count
        return nil
    }

    // MARK: Parts

    /// If the rest begins with `start`, skips past the next `end` or to the end of the text, and returns true.
    private mutating func skip(_ start: String, until end: String) -> Bool {
        guard bytes[position...].starts(with: start.utf8) else { return false }
        position = find(end, from: position + start.utf8.count).map { $0 + end.utf8.count } ?? bytes.count
        return true
    }

    private func find(_ text: String, from start: Int) -> Int? {
        let pattern = Array(text.utf8)
        guard start <= bytes.count, let first = pattern.first else { return nil }
        var index = start
        while let candidate = bytes[index...].firstIndex(of: first) {
            let rest = bytes[candidate...].prefix(pattern.count)
            if rest.count == pattern.count && zip(rest, pattern).allSatisfy({ Self.lower($0) == $1 || $0 == $1 }) {
                return candidate
            }
            index = candidate + 1
        }
        return nil
    }

    /// Reads the text up to the next tag, including CDATA sections.
    private mutating func readText() -> String {
        var text = ""
        while position < bytes.count {
            let piece = bytes[position...].prefix { $0 != UInt8(ascii: "<") }
            text += CharacterReferences.decode(piece)
            position = piece.endIndex
            let start = position
            guard skip("<![CDATA[", until: "]]>") else { break }
            text += String(decoding: bytes[(start + 9)..<Swift.max(start + 9, position - 3)], as: UTF8.self)
        }
        let trimmed = text.drop { $0.isWhitespace }
        return String(trimmed.reversed().drop { $0.isWhitespace }.reversed())
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(lower(byte)) }

    private static func lower(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }
}

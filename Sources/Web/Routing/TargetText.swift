/// Splits request targets by their bytes. Walking over characters would find the same separators, because they are ASCII, but
/// would take up to a hundred times as long, and clients choose the length of a target.
extension Substring {
    /// The text before the first of the separators; all of the text without one.
    func before(_ separators: UInt8...) -> Substring {
        separators.reduce(self) { text, separator in text.utf8.firstIndex(of: separator).map { text[..<$0] } ?? text }
    }

    /// The text without its first bytes.
    ///
    /// - Parameter count: The number of bytes, which must end between characters.
    func droppingBytes(_ count: Int) -> Substring { Substring(utf8.dropFirst(count)) }

    var withoutLeadingSlashes: Substring { Substring(utf8.drop { $0 == UInt8(ascii: "/") }) }

    func parts(at separator: UInt8, maxSplits: Int = .max, keepingEmpty: Bool = false) -> [Substring] {
        utf8.split(separator: separator, maxSplits: maxSplits, omittingEmptySubsequences: !keepingEmpty).map { Substring($0) }
    }

    /// The text before the last dot of the last segment of a path, and the text after the dot in lower case; nil without a dot.
    var splitAtExtension: (name: Substring, fileExtension: String)? {
        guard let dot = utf8.lastIndex(of: UInt8(ascii: ".")) else { return nil }
        let after = self[utf8.index(after: dot)...]
        guard !after.utf8.contains(UInt8(ascii: "/")) else { return nil }
        return (self[..<dot], after.lowercased())
    }
}

extension String {
    /// The path of a target, and its query with the question mark.
    var pathAndQuery: (path: Substring, query: Substring) {
        let path = self[...].before(UInt8(ascii: "?"))
        return (path, self[path.endIndex...])
    }
}

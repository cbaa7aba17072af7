/// The search for the end of a script (HTML standard, sections 13.2.5.4 and 13.2.5.15 to 13.2.5.31).
///
/// Within a comment, a nested `<script>` hides the next end tag.
struct ScriptText: Equatable {
    private enum State {
        case plain
        case comment
        case nestedScript
    }

    private var state = State.plain
    /// Whether the end tag follows.
    private(set) var hasEnded = false

    /// Returns the number of bytes that certainly belong to the script. A pattern that may be incomplete is left for the next
    /// call.
    mutating func consume(_ bytes: ArraySlice<UInt8>) -> Int {
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let rest = bytes[index...]
            if rest.first == UInt8(ascii: "<") {
                // The longest pattern is `</script` with the byte after it.
                if rest.count < 9 { break }
                if state == .plain, rest.starts(with: "<!--".utf8) {
                    state = .comment
                    // The two hyphens may belong to the end of the comment.
                    index += 2
                    continue
                }
                if rest.isTag("</script") {
                    if state != .nestedScript {
                        hasEnded = true
                        break
                    }
                    state = .comment
                } else if state == .comment, rest.isTag("<script") {
                    state = .nestedScript
                }
            } else if state != .plain, rest.first == UInt8(ascii: "-") {
                if rest.count < 3 { break }
                if rest.starts(with: "-->".utf8) { state = .plain }
            }
            index += 1
        }
        return index - bytes.startIndex
    }
}

extension ArraySlice<UInt8> {
    /// Whether the bytes begin with a tag: `start` in upper or lower case, and a byte that ends the tag's name.
    func isTag(_ start: String) -> Bool {
        let count = start.utf8.count
        guard self.count > count, zip(self, start.utf8).allSatisfy({ $0.lowercasedASCII == $1 }) else { return false }
        let next = self[startIndex + count]
        return next.isHTMLSpace || next == UInt8(ascii: "/") || next == UInt8(ascii: ">")
    }

    /// Returns the index of the first end tag of an element.
    func firstEndTag(of name: String) -> Int? {
        let start = "</" + name
        var index = startIndex
        while let candidate = self[index...].firstIndex(of: UInt8(ascii: "<")) {
            if self[candidate...].isTag(start) { return candidate }
            index = candidate + 1
        }
        return nil
    }

    func firstRange(of pattern: [UInt8]) -> Range<Int>? {
        guard let first = pattern.first else { return nil }
        var index = startIndex
        while let candidate = self[index...].firstIndex(of: first) {
            if self[candidate...].starts(with: pattern) { return candidate..<(candidate + pattern.count) }
            index = candidate + 1
        }
        return nil
    }
}

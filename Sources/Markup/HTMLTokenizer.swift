/// A tokenizer that splits an HTML page into start tags, end tags and other text as it arrives (HTML standard, section 13.2.5).
///
/// The texts of all tokens, joined, are the page, byte for byte. Comments, declarations and the raw text of elements such as
/// `script` contain no tags. The memory is bounded: a tag of more than ``maxTagLength`` bytes counts as text.
package struct HTMLTokenizer {
    package enum Token: Equatable {
        /// Anything but tags. Text may arrive in several pieces.
        case text(ArraySlice<UInt8>)
        case startTag(StartTag)
        /// An end tag with its name in lower case.
        case endTag(String, ArraySlice<UInt8>)
    }

    /// The longest tag in bytes.
    package static let maxTagLength = 1 << 20
    /// The number of open elements that are remembered. Chromium nests no more either.
    static let maxDepth = 512

    private enum State: Equatable {
        case data
        /// Text up to and including a terminator.
        case until([UInt8])
        /// A comment, which `-->` or `--!>` ends.
        case comment
        /// The content of an element that contains no markup.
        case rawText(String)
        case script(ScriptText)
        /// The rest of the page.
        case plainText
    }

    private var state = State.data
    private var pending: [UInt8] = []
    private var foreign = ForeignContent()

    package init() {}

    /// Adds a piece of the page and returns the complete tokens.
    package mutating func append(_ piece: some Sequence<UInt8>) -> [Token] {
        pending += piece
        return takeTokens(isLast: false)
    }

    /// Ends the page and returns the remaining tokens.
    package mutating func finish() -> [Token] { takeTokens(isLast: true) }

    private mutating func takeTokens(isLast: Bool) -> [Token] {
        var tokens: [Token] = []
        var rest = pending[...]
        while !rest.isEmpty, let token = nextToken(&rest, isLast: isLast) {
            if case .text(let text) = token, text.isEmpty { continue }
            tokens.append(token)
        }
        if isLast, !rest.isEmpty {
            tokens.append(.text(rest))
            rest = []
        }
        pending = Array(rest)
        return tokens
    }

    /// Removes a token from `rest`; returns nil if the token is incomplete. May return empty text after a change of the state.
    private mutating func nextToken(_ rest: inout ArraySlice<UInt8>, isLast: Bool) -> Token? {
        switch state {
        case .data:
            return nextMarkup(&rest, isLast: isLast)
        case .plainText:
            return Self.take(rest.endIndex, from: &rest)
        case .until(let terminator):
            if let end = rest.firstRange(of: terminator)?.upperBound {
                state = .data
                return Self.take(end, from: &rest)
            }
            return takeUnfinished(&rest, keeping: terminator.count - 1)
        case .comment:
            var index = rest.startIndex
            while let dashes = rest[index...].firstRange(of: Array("--".utf8)) {
                for end in [">", "!>"] where rest[dashes.upperBound...].starts(with: end.utf8) {
                    state = .data
                    return Self.take(dashes.upperBound + end.utf8.count, from: &rest)
                }
                index = dashes.lowerBound + 1
            }
            return takeUnfinished(&rest, keeping: 3)
        case .rawText(let name):
            if let end = rest.firstEndTag(of: name) {
                state = .data
                return Self.take(end, from: &rest)
            }
            return takeUnfinished(&rest, keeping: name.utf8.count + 2)
        case .script(var script):
            let length = script.consume(rest)
            let hasEnded = script.hasEnded
            state = hasEnded ? .data : .script(script)
            return length == 0 && !hasEnded ? nil : Self.take(rest.startIndex + length, from: &rest)
        }
    }

    private mutating func nextMarkup(_ rest: inout ArraySlice<UInt8>, isLast: Bool) -> Token? {
        guard let start = rest.firstIndex(of: UInt8(ascii: "<")) else { return Self.take(rest.endIndex, from: &rest) }
        if start > rest.startIndex { return Self.take(start, from: &rest) }
        guard start + 1 < rest.endIndex else { return nil }
        switch rest[start + 1] {
        case UInt8(ascii: "!"):
            return openDeclaration(&rest, isLast: isLast)
        case UInt8(ascii: "?"):
            state = .until(Array(">".utf8))
            return Self.take(start + 2, from: &rest)
        case UInt8(ascii: "/"):
            guard start + 2 < rest.endIndex else { return nil }
            guard rest[start + 2].isASCIILetter else {
                state = .until(Array(">".utf8))
                return Self.take(start + 2, from: &rest)
            }
            guard let tag = StartTag(rest, from: start, nameStart: start + 2) else { return takeLongTag(&rest) }
            rest = rest[tag.text.endIndex...]
            foreign.close(tag.name)
            return .endTag(tag.name, tag.text)
        case let byte where byte.isASCIILetter:
            guard let tag = StartTag(rest, from: start, nameStart: start + 1) else { return takeLongTag(&rest) }
            rest = rest[tag.text.endIndex...]
            open(tag)
            return .startTag(tag)
        default:
            return Self.take(start + 1, from: &rest)
        }
    }

    /// Removes the start of a comment, a CDATA section or another declaration.
    private mutating func openDeclaration(_ rest: inout ArraySlice<UInt8>, isLast: Bool) -> Token? {
        let (comment, section) = (Array("<!--".utf8), Array("<![CDATA[".utf8))
        if !isLast, rest.count < section.count, comment.starts(with: rest) || section.starts(with: rest) { return nil }
        let start = rest.startIndex
        if rest.starts(with: comment) {
            // `<!-->` and `<!--->` are complete comments.
            if rest.count < 6, !isLast { return nil }
            for end in [Array(">".utf8), Array("->".utf8)] where rest.dropFirst(4).starts(with: end) {
                return Self.take(start + 4 + end.count, from: &rest)
            }
            state = .comment
            return Self.take(start + 4, from: &rest)
        }
        if foreign.allowsSections, rest.starts(with: section) {
            state = .until(Array("]]>".utf8))
            return Self.take(start + section.count, from: &rest)
        }
        state = .until(Array(">".utf8))
        return Self.take(start + 2, from: &rest)
    }

    // MARK: Elements

    private mutating func open(_ tag: StartTag) {
        if foreign.open(tag) { return }
        switch tag.name {
        case "script": state = .script(ScriptText())
        case "style", "xmp", "iframe", "noembed", "noframes", "title", "textarea": state = .rawText(tag.name)
        case "plaintext": state = .plainText
        default: break
        }
    }

    // MARK: Text

    private static func take(_ end: Int, from rest: inout ArraySlice<UInt8>) -> Token {
        defer { rest = rest[end...] }
        return .text(rest[..<end])
    }

    /// Removes all but the last `count` bytes, in which a terminator may begin.
    private func takeUnfinished(_ rest: inout ArraySlice<UInt8>, keeping count: Int) -> Token? {
        rest.count > count ? Self.take(rest.endIndex - count, from: &rest) : nil
    }

    /// Removes the start of a tag that is too long, as text; returns nil if the tag may still end.
    ///
    /// With shorter pieces, a page of many `<` would be searched to its end once per `<`.
    private func takeLongTag(_ rest: inout ArraySlice<UInt8>) -> Token? {
        rest.count > Self.maxTagLength ? Self.take(rest.startIndex + Self.maxTagLength, from: &rest) : nil
    }
}

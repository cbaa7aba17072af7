internal import Foundation
internal import Markup

package struct PrewarmList: Sendable, Equatable {
    package enum Format: String, Sendable, CaseIterable {
        /// One URL per line; lines that start with `#` are comments.
        case lines
        /// The body of `POST /prewarm`: one JSON object per line, or a list of objects.
        case ndjson
        /// A sitemap (sitemaps.org), or an index of sitemaps.
        case sitemap
        /// An HTML page or a feed: the animations that it shows or links to.
        case html

        /// Guesses the format from the start of the text.
        package static func guess(_ text: [UInt8]) -> Format {
            let start = text.prefix(4096).drop { $0 <= 0x20 || $0 == 0xEF || $0 == 0xBB || $0 == 0xBF }
            guard let first = start.first else { return .lines }
            switch first {
            case UInt8(ascii: "{"), UInt8(ascii: "["): return .ndjson
            case UInt8(ascii: "<"):
                var tokenizer = HTMLTokenizer()
                let names = tokenizer.append(start).compactMap(PrewarmList.element).prefix(3)
                return names.contains { $0 == "urlset" || $0 == "sitemapindex" } ? .sitemap : .html
            default: return .lines
            }
        }
    }

    /// The error for a list that cannot be parsed. The description is a sentence for the user.
    package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
        package let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    package private(set) var entries: [PrewarmEntry] = []
    /// The URLs of the sitemaps that a sitemap index names.
    package private(set) var sitemaps: [String] = []

    /// Parses a list.
    ///
    /// - Parameters:
    ///   - format: The syntax; nil guesses it.
    ///   - base: The URL of an HTML page, which resolves relative links.
    ///   - template: Format and options for entries that do not have their own.
    package init(
        _ text: [UInt8], format: Format? = nil, base: String? = nil, template: PrewarmEntry = PrewarmEntry(url: "")
    ) throws(Malformed) {
        if text.contains(0) { throw Malformed("The list is not UTF-8 text; give lines, NDJSON, a sitemap or an HTML page.") }
        switch format ?? .guess(text) {
        case .lines:
            entries = try Self.lines(text).map { PrewarmEntry(url: $0, format: template.format, options: template.options) }
        case .ndjson:
            entries = try PrewarmListReader.read(text, limit: .max, template: template)
        case .sitemap: try readSitemap(text, template)
        case .html:
            entries = LinkedAnimations.find(text, base: base)
                .map { PrewarmEntry(url: $0, format: template.format, options: template.options) }
        }
    }

    private static func lines(_ text: [UInt8]) throws(Malformed) -> [String] {
        let lines = String(decoding: text, as: UTF8.self).split(omittingEmptySubsequences: false, whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces.union(["\u{FEFF}"])) }
        let urls = lines.enumerated().filter { !$0.element.isEmpty && !$0.element.hasPrefix("#") }
        // Another encoding would lead to the URL of another file.
        if let wrong = urls.first(where: { $0.element.contains("\u{FFFD}") }) {
            throw Malformed("Line \(wrong.offset + 1) is not UTF-8.")
        }
        return urls.map(\.element)
    }

    /// Collects animations from `loc` and from elements of extensions such as `image:loc` and `video:thumbnail_loc`, and sitemaps
    /// from `loc` within `sitemap`.
    private mutating func readSitemap(_ text: [UInt8], _ template: PrewarmEntry) throws(Malformed) {
        var isIndexEntry = false
        var location: [UInt8]?
        Self.forEachToken(of: text) { token in
            if case .text(let piece) = token {
                location? += piece
                return
            }
            if let url = location.take().map(Self.content) {
                if isIndexEntry {
                    sitemaps.append(url)
                } else if LinkedAnimations.isAnimation(url) {
                    entries.append(PrewarmEntry(url: url, format: template.format, options: template.options))
                }
            }
            switch Self.element(token) {
            case "sitemap": isIndexEntry = true
            case "url": isIndexEntry = false
            case let name?: if name == "loc" || name.hasSuffix("_loc") { location = [] }
            case nil: break
            }
        }
        if let wrong = (sitemaps + entries.map(\.url)).first(where: { $0.contains("\u{FFFD}") }) {
            throw Malformed("The address \(wrong) is not UTF-8.")
        }
    }

    /// The name of an element without its prefix; nil for a token other than a start tag.
    private static func element(_ token: HTMLTokenizer.Token) -> Substring? {
        guard case .startTag(let tag) = token else { return nil }
        return tag.name.split(separator: ":").last
    }

    /// Decodes the text of an element, which may be a CDATA section. Surrounding spaces are removed.
    private static func content(_ bytes: [UInt8]) -> String {
        let (start, end) = ("<![CDATA[", "]]>")
        let text = String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        guard text.hasPrefix(start), text.hasSuffix(end) else { return CharacterReferences.decode(text.utf8) }
        return text.dropFirst(start.count).dropLast(end.count).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Calls `body` with the tokens of a page or a sitemap. Few of them exist at the same time.
    static func forEachToken(of text: [UInt8], _ body: (HTMLTokenizer.Token) -> Void) {
        var tokenizer = HTMLTokenizer()
        for start in stride(from: 0, to: text.count, by: 1 << 16) {
            for token in tokenizer.append(text[start...].prefix(1 << 16)) { body(token) }
        }
        for token in tokenizer.finish() { body(token) }
    }
}

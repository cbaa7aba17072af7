internal import Foundation

/// A list of sources in one of the forms people have them in.
package struct PrewarmList: Sendable, Equatable {
    /// How a list is written.
    package enum Format: String, Sendable, CaseIterable {
        /// A URL a line; what follows `#` at a line's start is left out.
        case lines
        /// An object a line, or a list of objects, as `POST /prewarm` takes them.
        case ndjson
        /// A sitemap (sitemaps.org), or an index of sitemaps.
        case sitemap
        /// A page: the GIFs it shows and links to.
        case html

        /// What a text looks like.
        package static func guess(_ text: [UInt8]) -> Format {
            let start = text.prefix(4096).drop { $0 <= 0x20 || $0 == 0xEF || $0 == 0xBB || $0 == 0xBF }
            guard let first = start.first else { return .lines }
            switch first {
            case UInt8(ascii: "{"), UInt8(ascii: "["): return .ndjson
            case UInt8(ascii: "<"):
                let names = MarkupScanner(Array(start)).lazy.prefix(3).map(\.name)
                return names.contains { $0 == "urlset" || $0 == "sitemapindex" } ? .sitemap : .html
            default: return .lines
            }
        }
    }

    /// What is wrong with a list as a whole.
    package struct Malformed: Error, Sendable, CustomStringConvertible {
        package let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    package private(set) var entries: [PrewarmEntry] = []
    /// Sitemaps that an index names, yet to be read.
    package private(set) var sitemaps: [String] = []

    /// Reads a list.
    ///
    /// - Parameters:
    ///   - format: Nil for what it looks like.
    ///   - base: The page's own URL, for links that are not absolute.
    ///   - template: Format and options of entries that do not bring their own.
    package init(
        _ text: [UInt8], format: Format? = nil, base: String? = nil, template: PrewarmEntry = PrewarmEntry(url: "")
    ) throws(Malformed) {
        // gzip (RFC 1952), as sitemaps are kept sometimes.
        if text.starts(with: [0x1F, 0x8B]) { throw Malformed("The list is compressed; unpack it first.") }
        switch format ?? .guess(text) {
        case .lines:
            entries = Self.lines(text).map { PrewarmEntry(url: $0, format: template.format, options: template.options) }
        case .ndjson:
            entries = try PrewarmListReader.read(text, limit: .max)
        case .sitemap: readSitemap(text, template)
        case .html:
            entries = LinkedGIFs.find(text, base: base)
                .map { PrewarmEntry(url: $0, format: template.format, options: template.options) }
        }
    }

    private static func lines(_ text: [UInt8]) -> [String] {
        String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline)
            .map { $0.trimmingCharacters(in: .whitespaces.union(["\u{FEFF}"])) }
            .filter { !$0.isEmpty && !$0.hasPrefix("#") }
    }

    /// `loc` of a page counts where it is a GIF, `image:loc` and its kin likewise; `loc` inside `sitemap` names another list.
    private mutating func readSitemap(_ text: [UInt8], _ template: PrewarmEntry) {
        var isIndexEntry = false
        for element in MarkupScanner(text) {
            switch element.name {
            case "sitemap": isIndexEntry = true
            case "url": isIndexEntry = false
            case "loc" where isIndexEntry: sitemaps.append(element.text)
            case let name where name == "loc" || name.hasSuffix(":loc"):
                if LinkedGIFs.isGIF(element.text) {
                    entries.append(PrewarmEntry(url: element.text, format: template.format, options: template.options))
                }
            default: break
            }
        }
    }
}

internal import Foundation
internal import Markup

/// Finds the animations that an HTML page shows or links to.
enum LinkedAnimations {
    /// Attributes with URLs, and those with sets of URLs. Enclosures of feeds have `url`.
    private static let names = PageRewriter.lazyNames.union([
        "src", "href", "poster", "content", "srcset", "imagesrcset", "url",
    ])

    /// The root elements of feeds in RSS, Atom and RSS 1.0.
    private static let feeds: Set = ["rss", "feed", "rdf:rdf"]

    /// Returns the absolute URLs of animations in the order of the page, without duplicates.
    ///
    /// Links whose URLs are uncertain are skipped; see ``LinkText``.
    ///
    /// - Parameter base: The page's URL, which resolves relative links unless the page has a `<base>`. Without either,
    ///   relative links are skipped.
    static func find(_ page: [UInt8], base: String?) -> [String] {
        var base = base.flatMap { URL(string: $0) }
        var hasBaseElement = false
        var found: [String] = []
        var seen = Set<String>()
        var isFeed = false
        func add(_ value: String) {
            guard let link = LinkText.normalize(value), isAnimation(link),
                let url = URL(string: LinkText.encode(link), relativeTo: base)?.absoluteURL,
                ["http", "https"].contains(url.scheme?.lowercased()),
                seen.insert(url.absoluteString).inserted
            else { return }
            found.append(url.absoluteString)
        }
        func visit(_ token: HTMLTokenizer.Token) {
            guard case .startTag(let tag) = token else { return }
            if feeds.contains(tag.name) { isFeed = true }
            if tag.name == "base", let own = tag["href"]?.value {
                // The first `<base>` with an address counts (HTML standard, section 4.2.3).
                if hasBaseElement { return }
                hasBaseElement = true
                let link = LinkText.normalize(own)
                base = link.flatMap { URL(string: LinkText.encode($0), relativeTo: base)?.absoluteURL ?? base }
                return
            }
            for attribute in tag.attributes where names.contains(attribute.name) {
                (attribute.name.hasSuffix("set") ? SourceSet.links(attribute.value) : [attribute.value]).forEach(add)
            }
        }
        /// The text since the last tag.
        var text: [UInt8] = []
        PrewarmList.forEachToken(of: page) { token in
            if case .text(let piece) = token {
                if isFeed { text += piece }
                return
            }
            if !text.isEmpty {
                // The texts of a feed are HTML, in references or in CDATA sections.
                let content = CharacterReferences.decode(text).replacing("<![CDATA[", with: "")
                PrewarmList.forEachToken(of: Array(content.utf8), visit)
                // Or an address, such as that of an attachment in an export of WordPress.
                let words = content.replacing("]]>", with: "").split(whereSeparator: \.isWhitespace)
                if words.count == 1, words[0].contains("://") { add(String(words[0])) }
                text = []
            }
            visit(token)
        }
        return found
    }

    /// The extensions of links that are tried. A WebP may be a still picture, which is refused after its first bytes. Most PNGs
    /// are still, so `.png` is omitted; a list can name them.
    private static let extensions = [".gif", ".apng", ".webp"]

    static func isAnimation(_ link: String) -> Bool {
        let path = link.prefix { $0 != "?" && $0 != "#" }.lowercased()
        return extensions.contains { path.hasSuffix($0) }
    }
}

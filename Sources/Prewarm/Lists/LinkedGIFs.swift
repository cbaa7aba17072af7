internal import Foundation

/// Finds the GIFs that an HTML page shows or links to.
enum LinkedGIFs {
    /// Attributes with URLs. Scripts that load images lazily use the `data-` attributes.
    private static let attributes = ["src", "href", "data-src", "data-original", "data-gif", "poster", "content"]

    /// The absolute URLs of GIFs in the order of the page, each once.
    ///
    /// - Parameter base: The page's URL, which resolves relative links unless the page has a `<base>`. Without either,
    ///   relative links are skipped.
    static func find(_ page: [UInt8], base: String?) -> [String] {
        var base = base.flatMap { URL(string: $0) }
        var found: [String] = []
        var seen = Set<String>()
        for element in MarkupScanner(page) {
            if element.name == "base", let own = element.attributes["href"] {
                base = URL(string: own, relativeTo: base)?.absoluteURL ?? base
                continue
            }
            var links = attributes.compactMap { element.attributes[$0] }
            for name in ["srcset", "data-srcset"] { links += element.attributes[name].map(candidates) ?? [] }
            for link in links where isGIF(link) {
                guard let url = URL(string: link, relativeTo: base)?.absoluteURL, url.scheme == "http" || url.scheme == "https",
                    seen.insert(url.absoluteString).inserted
                else { continue }
                found.append(url.absoluteString)
            }
        }
        return found
    }

    /// Whether the path ends in `.gif`.
    static func isGIF(_ link: String) -> Bool {
        link.prefix { $0 != "?" && $0 != "#" }.lowercased().hasSuffix(".gif")
    }

    /// The URLs of a `srcset`, without widths and densities.
    private static func candidates(_ text: String) -> [String] {
        text.split(separator: ",").compactMap { $0.split(whereSeparator: \.isWhitespace).first.map(String.init) }
    }
}

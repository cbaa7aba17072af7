internal import Foundation

/// The GIFs of an HTML page.
enum LinkedGIFs {
    /// Attributes that name what an element shows or links to; pages that load late keep the URL in a `data-` one.
    private static let attributes = ["src", "href", "data-src", "data-original", "data-gif", "poster", "content"]

    /// URLs of GIFs, in the order of the page, each once. Links that are not absolute need the page's URL, from `base` or
    /// from the page's own `<base>`; without one they are left out.
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

    /// Whether the path ends in `.gif`, whatever its query.
    static func isGIF(_ link: String) -> Bool {
        link.prefix { $0 != "?" && $0 != "#" }.lowercased().hasSuffix(".gif")
    }

    /// The URLs of a `srcset`, without their widths and densities.
    private static func candidates(_ text: String) -> [String] {
        text.split(separator: ",").compactMap { $0.split(whereSeparator: \.isWhitespace).first.map(String.init) }
    }
}

internal import Fetch

/// Where a page's video, its poster and the page itself are to be found.
struct PageLinks: Equatable {
    /// What is put before a target to make it an address: scheme, host and what the public URL has of a path. Empty
    /// where a client of HTTP/1.0 has told no host.
    let base: String
    /// The same for use on the page itself: the public URL's path, or nothing.
    let root: String
    /// Targets, each beginning with a slash.
    let page: String
    let video: String
    let poster: String

    /// - Parameters:
    ///   - target: What was asked for the page.
    ///   - rendition: The page, with its options.
    ///   - poster: What stands in for the video.
    ///   - publicURL: As the settings have it.
    ///   - host: As the request has it.
    init(
        target: String, rendition: Rendition, poster: Rendition, of source: SourceURL, publicURL: String?, host: String?
    ) {
        base = Self.base(publicURL: publicURL, host: host)
        root = publicURL.map(Self.path) ?? ""
        page = target
        let stem = Self.mountedStem(target)
        video = Self.target(rendition.inFormat(.mp4), of: source, stem: stem)
        self.poster = Self.target(poster, of: source, stem: stem)
    }

    /// What is put before a target to make it an address.
    static func base(publicURL: String?, host: String?) -> String {
        publicURL ?? host.map { "http://\($0)" } ?? ""
    }

    /// The path of an absolute URL.
    private static func path(_ url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        return String(url[scheme.upperBound...].drop { $0 != "/" })
    }

    /// The page's address.
    var pageAddress: String { base + page }

    /// The address that tells how the page is embedded.
    var oembedAddress: String { "\(base)/oembed?url=\(PercentText.encode(pageAddress))" }

    /// A mount's path without its extension, where the page was asked for through one: what it shows is to be asked for
    /// in the same way.
    private static func mountedStem(_ target: String) -> Substring? {
        let path = target.prefix { $0 != "?" }
        guard path.hasSuffix(".html"), let name = path.dropFirst().split(separator: "/").first else { return nil }
        let format = name.prefix { $0 != "," }
        return Rendition.Format.named(format) == nil ? path.dropLast(".html".count) : nil
    }

    private static func target(_ rendition: Rendition, of source: SourceURL, stem: Substring?) -> String {
        let options = rendition.canonicalOptions.map { "\($0.name)=\($0.value)" }
        let format = rendition.format.rawValue
        guard let stem else { return "/" + ([format] + options).joined(separator: ",") + "/\(source.canonical)" }
        return "\(stem).\(format)" + (options.isEmpty ? "" : "?" + options.joined(separator: "&"))
    }
}

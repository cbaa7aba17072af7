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
    ///   - video: What the page plays.
    ///   - poster: What stands in for the video until it plays.
    ///   - signer: Signs both; nil for no signature.
    ///   - expires: Until when the page may be asked for, and so what it shows; nil for always.
    init(
        target: String, base: String, root: String, video: Rendition, poster: Rendition, of source: SourceURL,
        signer: TargetSigner?, expires: Int64?
    ) {
        self.base = base
        self.root = root
        page = target
        let stem = Self.mountedStem(target)
        let signer = signer ?? TargetSigner(keys: SigningKeys())
        self.video = Self.target(video, of: source, stem, signer, expires)
        self.poster = Self.target(poster, of: source, stem, signer, expires)
    }

    /// What is put before a target to make it an address.
    static func base(publicURL: String?, host: String?) -> String {
        publicURL ?? host.map { "http://\($0)" } ?? ""
    }

    /// The path of an absolute URL.
    static func path(_ url: String) -> String {
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

    private static func target(
        _ rendition: Rendition, of source: SourceURL, _ stem: Substring?, _ signer: TargetSigner, _ expires: Int64?
    ) -> String {
        let options = rendition.canonicalOptions.map { QueryItem(name: $0.name, value: $0.value) }
        guard let stem else {
            // No option in canonical form holds a character that cannot be signed.
            return signer.target(rendition.format, options, of: source, expires: expires) ?? "/"
        }
        let pairs = (signer.signed(rendition.format, options, of: source, expires: expires) ?? []).map {
            "\($0.name)=\($0.value)"
        }
        return "\(stem).\(rendition.format.rawValue)" + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }
}

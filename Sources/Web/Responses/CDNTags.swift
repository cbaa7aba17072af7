internal import Digests
internal import Fetch
internal import HTTP
internal import SystemIO

/// The tags by which a CDN purges all responses made from a source, or from all sources of a host.
///
/// They are hashes, because a response of a mount must not reveal its origin.
struct CDNTags: Equatable {
    let host: String
    let source: String

    /// - Parameter sourceURL: In canonical form.
    init(_ sourceURL: String) {
        host = "gifreel-host-" + Self.hash(Self.host(of: sourceURL))
        source = "gifreel-source-" + Self.hash(sourceURL)
    }

    /// The host of a URL; the bucket of an object in S3.
    private static func host(of sourceURL: String) -> String {
        if sourceURL.hasPrefix(SourceURL.s3Scheme) {
            return String(sourceURL.dropFirst(SourceURL.s3Scheme.count).prefix { $0 != "/" })
        }
        return (try? SourceURL(sourceURL))?.host ?? ""
    }

    /// The first 16 hexadecimal digits of the SHA-256 of a text.
    private static func hash(_ text: String) -> String {
        Hex.encode(SHA256.hash(text.utf8).prefix(8))
    }

    /// The tags as the large CDNs read them: separated by commas in `Cache-Tag`, by spaces in `Surrogate-Key`.
    var fields: HTTPHeaders {
        ["Cache-Tag": "\(host),\(source)", "Surrogate-Key": "\(host) \(source)"]
    }
}

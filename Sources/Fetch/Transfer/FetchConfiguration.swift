package import HTTPClient

/// The settings of a ``Fetcher``. Values must be in the documented ranges, which are not checked.
package struct FetchConfiguration: Sendable {
    /// The sources that may be fetched, and the targets of redirects.
    package var allow: [SourcePattern] = [.any]
    /// Origins that may be fetched from even if their addresses are special.
    package var allowPrivate: [AddressException] = []
    /// The NAT64 prefixes of this network. An address in one of them is judged by its embedded IPv4 address.
    package var translationPrefixes: [TranslationPrefix] = []
    /// The ports that may be connected to.
    package var ports: PortSet = [80, 443, 8080, 8443]
    /// The largest body, in bytes.
    package var maxBytes = 20 << 20
    /// The largest response head in bytes, including interim responses (1xx) and trailers.
    package var maxHeadBytes = 64 << 10
    /// The time limit for name lookup, connect and TLS handshake together.
    package var connectTimeout: Duration = .seconds(3)
    /// The time limit for the whole fetch, including redirects, excluding the time in the queue.
    package var timeout: Duration = .seconds(10)
    /// The minimum rate of a response that has begun, in bytes per second over ``stallTimeout``.
    package var stallRate = 1000
    /// How long a response may stay below ``stallRate``.
    package var stallTimeout: Duration = .seconds(10)
    /// The maximum number of redirects to follow.
    package var maxRedirects = 5
    /// The maximum number of concurrent fetches.
    package var concurrency = 64
    /// The maximum number of concurrent fetches from one host and port.
    package var perHost = 8
    /// The maximum number of queued fetches.
    package var queue = 256
    /// The maximum number of queued fetches for one host and port, so that one slow origin does not fill the queue.
    package var queuePerHost = 64
    /// The formats that negotiating origins may send, in order of preference.
    package var formats = [AcceptedFormat(mediaTypes: ["image/gif"], fileExtensions: ["gif"])]
    /// The value of `User-Agent`; nil for the name of the program.
    package var userAgent: String?
    /// The name in `CDN-Loop` (RFC 8586), by which the service recognizes its own requests.
    package var loopName = "gifreel"
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var certificateAuthorities: String?
    /// How requests for objects are signed, by bucket name.
    package var buckets: [String: BucketAccess] = [:]
    /// The mounts, whose sources may be fetched in addition to ``allow``.
    package var mounts: [MountRule] = []

    package init() {}

    /// The rules for sources, compiled from these settings.
    package var rules: SourceRules {
        SourceRules(
            allow: allow,
            addresses: AddressPolicy(ports: ports, exceptions: allowPrivate, translationPrefixes: translationPrefixes),
            mounts: mounts)
    }

    /// Whether `text` is a valid ``loopName``: printable ASCII without spaces, commas and semicolons.
    package static func isLoopName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && ![0x2c, 0x3b].contains($0) }
    }
}

/// A source format that requests can accept.
package struct AcceptedFormat: Sendable, Equatable {
    package let mediaTypes: [String]
    /// The file extensions in lower case.
    package let fileExtensions: [String]

    package init(mediaTypes: [String], fileExtensions: [String]) {
        self.mediaTypes = mediaTypes
        self.fileExtensions = fileExtensions
    }
}

extension [AcceptedFormat] {
    /// Returns the value of `Accept` in a request for a path.
    ///
    /// If the path's extension names a format, the value names only that format, because origins that negotiate by the mere
    /// names in the field would convert the file to another format. For any other path, the value names every format.
    func accept(forPath path: String) -> String {
        let name = path.prefix { $0 != "?" }.split(separator: "/").last ?? ""
        let fileExtension = name.split(separator: ".").dropFirst().last?.lowercased()
        let named = filter { $0.fileExtensions.contains { $0 == fileExtension } }
        let types = (named.isEmpty ? self : named).flatMap(\.mediaTypes)
        return (types + ["*/*;q=0.1"]).joined(separator: ", ")
    }
}

/// How requests for the objects of a bucket are signed.
package struct BucketAccess: Sendable, Equatable {
    /// The URL of the bucket, with a trailing slash.
    private let root: String
    /// Nil for a public bucket, whose objects are fetched without a signature.
    let signer: RequestSigner?

    package init(root: String, signer: RequestSigner?) {
        self.root = root
        self.signer = signer
    }
}

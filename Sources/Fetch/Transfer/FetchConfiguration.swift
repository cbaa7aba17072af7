/// The settings of a ``Fetcher``. Values must be in the documented ranges, which are not checked.
package struct FetchConfiguration: Sendable {
    /// The sources that may be fetched, and the targets of redirects.
    package var allow: [SourcePattern] = [.any]
    /// Origins that may be fetched from although their addresses are special.
    package var allowPrivate: [AddressException] = []
    /// The NAT64 prefixes of this network; an address in one is judged by the IPv4 address it carries.
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
    /// The lowest rate of a response that has begun, in bytes per second over ``stallTimeout``.
    package var stallRate = 1000
    /// How long a response may stay below ``stallRate``.
    package var stallTimeout: Duration = .seconds(10)
    /// Redirects that are followed.
    package var maxRedirects = 5
    /// Fetches that run at once.
    package var concurrency = 64
    /// Fetches that run at once from one host and port.
    package var perHost = 8
    /// Fetches that may wait.
    package var queue = 256
    /// Fetches that may wait for one host and port, so that one slow origin does not fill the queue.
    package var queuePerHost = 64
    /// The formats that negotiating origins may send, in order of preference.
    package var formats = [AcceptedFormat(mediaTypes: ["image/gif"], fileExtensions: ["gif"])]
    /// The value of `User-Agent`.
    package var userAgent = "gifreel"
    /// The name in `CDN-Loop` (RFC 8586), by which the service recognises its own requests.
    package var loopName = "gifreel"
    /// A PEM file of certificate authorities to trust instead of the system's.
    package var certificateAuthorities: String?
    /// How requests for the objects of buckets are signed, by the name of the bucket.
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

    /// Whether the text is one word of printable ASCII, as ``loopName`` must be.
    package static func isLoopName(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && ![0x2c, 0x3b].contains($0) }
    }
}

/// A format of sources, as requests name it.
package struct AcceptedFormat: Sendable, Equatable {
    package let mediaTypes: [String]
    /// In lower case.
    package let fileExtensions: [String]

    package init(mediaTypes: [String], fileExtensions: [String]) {
        self.mediaTypes = mediaTypes
        self.fileExtensions = fileExtensions
    }
}

extension [AcceptedFormat] {
    /// The value of `Accept` in a request for a path.
    ///
    /// A path that names a format asks for it alone: origins that negotiate by the mere names in the field would convert the file of that
    /// format into another one. Otherwise every format is named.
    func accept(forPath path: String) -> String {
        let name = path.prefix { $0 != "?" }.split(separator: "/").last ?? ""
        let fileExtension = name.split(separator: ".").dropFirst().last?.lowercased()
        let named = filter { $0.fileExtensions.contains { $0 == fileExtension } }
        let types = (named.isEmpty ? self : named).flatMap(\.mediaTypes)
        return (types + ["*/*;q=0.1"]).joined(separator: ", ")
    }
}

/// A setting of ``FetchConfiguration`` with a value that cannot work.
package struct FetchConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The setting's name, without the name of its group.
    package let setting: String
    /// The rest of the sentence that begins with the name.
    package let reason: String

    package var description: String { "\(setting) \(reason)" }
}

/// The settings of a ``Fetcher``.
package struct FetchConfiguration: Sendable {
    /// Which URLs may be fetched, redirects included. Default: every one.
    package var allow: [SourcePattern] = [.any]
    /// Origins that may be fetched from although their addresses are special. Default: none.
    package var allowPrivate: [AddressException] = []
    /// The NAT64 prefixes of this network; an address in one is judged by the IPv4 address it carries. Default: none.
    package var translationPrefixes: [TranslationPrefix] = []
    /// The ports that may be connected to. Default: 80, 443, 8080, 8443.
    package var ports: PortSet = [80, 443, 8080, 8443]
    /// The largest body, in bytes. Default: 20 MiB.
    package var maxBytes = 20 << 20
    /// The largest response head in bytes, including interim responses (1xx) and trailers. Default: 64 KiB.
    package var maxHeadBytes = 64 << 10
    /// The time limit for name lookup, connect and TLS handshake together. Default: 3 s.
    package var connectTimeout: Duration = .seconds(3)
    /// The time limit for the whole fetch, including redirects, excluding the time in the queue. Default: 10 s.
    package var timeout: Duration = .seconds(10)
    /// The lowest rate of a response that has begun, in bytes per second over ``stallTimeout``. Default: 1 KB/s.
    package var stallRate = 1000
    /// How long a response may stay below ``stallRate``. Default: 10 s.
    package var stallTimeout: Duration = .seconds(10)
    /// Redirects that are followed. Default: 5.
    package var maxRedirects = 5
    /// Fetches that run at once. Default: 64.
    package var concurrency = 64
    /// Fetches that run at once from one host and port. Default: 8.
    package var perHost = 8
    /// Fetches that may wait. Default: 256.
    package var queue = 256
    /// Fetches that may wait for one host and port, so that one slow origin does not fill the queue. Default: 64.
    package var queuePerHost = 64
    /// The value of `User-Agent`. Default: `gifreel`.
    package var userAgent = "gifreel"
    /// The name in `CDN-Loop` (RFC 8586), by which the service recognises its own requests. Default: `gifreel`.
    package var loopName = "gifreel"
    /// A PEM file of certificate authorities to trust instead of the system's. Default: none.
    package var certificateAuthorities: String?
    /// The buckets whose objects may be fetched, by name. Default: none.
    package var buckets: [String: BucketAccess] = [:]
    /// The directories whose files may be read, as absolute paths that end with a slash. Default: none.
    package var directories: Set<String> = []
    /// The sources whose requests must be signed. Other sources may not redirect to them. Default: none.
    package var signedSources: [SourceScope] = []
    /// The fields of requests to certain origins, such as credentials. Default: none.
    package var originFields: [OriginFields] = []

    package init() {}

    /// The decision which URLs may be fetched, before any address is known.
    package var sourcePolicy: SourcePolicy {
        SourcePolicy(
            patterns: allow,
            addresses: AddressPolicy(ports: ports, exceptions: allowPrivate, translationPrefixes: translationPrefixes))
    }

    /// Validates every setting.
    ///
    /// - Throws: ``FetchConfigurationError`` for the first setting that cannot work.
    package func validate() throws(FetchConfigurationError) {
        try check(ports.isValid, "ports", "must be numbers from 1 to 65535")
        try check((64...(1 << 31)).contains(maxBytes), "max_bytes", "must be from 64 bytes to 2 GiB")
        try check((1 << 10...1 << 20).contains(maxHeadBytes), "max_head_bytes", "must be from 1 KiB to 1 MiB")
        let day = Duration.seconds(86_400)
        try check(connectTimeout > .zero && connectTimeout <= day, "connect_timeout", "must be over 0 and at most a day")
        try check(timeout > .zero && timeout <= day, "timeout", "must be over 0 and at most a day")
        try check(stallTimeout > .zero && stallTimeout <= day, "stall_timeout", "must be over 0 and at most a day")
        try check((0...(1 << 30)).contains(stallRate), "stall_rate", "must be from 0 to 1 GiB a second")
        try check((0...50).contains(maxRedirects), "max_redirects", "must be from 0 to 50")
        try check((1...4096).contains(concurrency), "concurrency", "must be from 1 to 4096")
        try check((1...4096).contains(perHost), "per_host", "must be from 1 to 4096")
        try check((0...65536).contains(queue), "queue", "must be from 0 to 65536")
        try check((0...65536).contains(queuePerHost), "queue_per_host", "must be from 0 to 65536")
        try check(Self.isFieldText(userAgent), "user_agent", "must be printable ASCII")
        try check(
            Self.isFieldText(loopName) && !loopName.contains(where: { " ,;".contains($0) }), "loop_name", "must be one word")
    }

    private func check(
        _ isGood: Bool, _ setting: String, _ reason: String
    ) throws(FetchConfigurationError) {
        guard isGood else { throw FetchConfigurationError(setting: setting, reason: reason) }
    }

    private static func isFieldText(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
}

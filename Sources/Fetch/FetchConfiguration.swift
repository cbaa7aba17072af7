/// Everything about fetching that can be set. A value; ``validate()`` says what is wrong with it.
package struct FetchConfiguration: Sendable {
    /// Which URLs may be fetched, redirects included. Default: every one.
    package var allow: [SourcePattern] = [.any]
    /// Origins that may be fetched from though their addresses or ports are special. Default: none.
    package var allowPrivate: [AddressException] = []
    /// The network's own NAT64 prefixes; an address in one is judged by the IPv4 address it carries. Default: none.
    package var translationPrefixes: [TranslationPrefix] = []
    /// The ports that may be connected to. Default: 80, 443, 8080, 8443.
    package var ports: Set<Int> = [80, 443, 8080, 8443]
    /// The largest body, in bytes. Default: 20 MiB.
    package var maxBytes = 20 << 20
    /// The largest head of an answer, interim answers (1xx) and trailers included, in bytes. Default: 64 KiB.
    package var maxHeadBytes = 64 << 10
    /// How long looking up the name, connecting and the TLS handshake may take together. Default: 3 s.
    package var connectTimeout: Duration = .seconds(3)
    /// How long the whole fetch may take, redirects included, waiting for a place excluded. Default: 10 s.
    package var timeout: Duration = .seconds(10)
    /// The slowest pace of an answer that has begun, in bytes a second over ``stallTime``. Default: 1 KB/s.
    package var stallRate = 1000
    /// How long an answer may stay under ``stallRate``. Default: 3 s.
    package var stallTime: Duration = .seconds(3)
    /// How many redirects are followed. Default: 5.
    package var maxRedirects = 5
    /// How many fetches run at once. Default: 64.
    package var concurrency = 64
    /// How many of them from one host and port. Default: 8.
    package var perHost = 8
    /// How many more may wait for a place. Default: 256.
    package var queue = 256
    /// How many of those for one host and port, so that one slow origin does not fill the queue. Default: 64.
    package var queuePerHost = 64
    /// What origins see as `User-Agent`. Default: `gifreel`.
    package var userAgent = "gifreel"
    /// What origins see in `CDN-Loop` (RFC 8586): a service that meets its own name there calls itself. Default: `gifreel`.
    package var loopName = "gifreel"
    /// A PEM file of certificate authorities to trust in place of the system's. Default: none.
    package var certificateAuthorities: String?

    package init() {}

    /// Finds the first setting that cannot work.
    ///
    /// - Throws: ``FetchConfigurationError``, which names it.
    package func validate() throws(FetchConfigurationError) {
        try check(!ports.isEmpty && ports.allSatisfy { (1...65535).contains($0) }, "ports", "must be numbers from 1 to 65535")
        try check((64...(1 << 31)).contains(maxBytes), "max_bytes", "must be from 64 bytes to 2 GiB")
        try check((1 << 10...1 << 20).contains(maxHeadBytes), "max_head_bytes", "must be from 1 KiB to 1 MiB")
        let day = Duration.seconds(86_400)
        try check(connectTimeout > .zero && connectTimeout <= day, "connect_timeout", "must be over 0 and at most a day")
        try check(timeout > .zero && timeout <= day, "timeout", "must be over 0 and at most a day")
        try check(stallTime > .zero && stallTime <= day, "stall_time", "must be over 0 and at most a day")
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

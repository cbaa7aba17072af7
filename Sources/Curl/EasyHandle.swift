package import CCurl

/// libcurl's process-wide state.
package enum CurlLibrary {
    /// Initialises libcurl once; later calls do nothing.
    ///
    /// Call it before other threads start, since TLS libraries may not be thread-safe during initialisation, and after worker
    /// processes were forked, so that they contain no state of libcurl.
    ///
    /// - Returns: Whether libcurl can be used.
    @discardableResult
    package static func prepare() -> Bool { isReady }

    private static let isReady = curl_global_init(ccurl_global_all) == CURLE_OK
}

/// The error type of a client on libcurl.
package protocol CurlError: Error {
    /// libcurl lacks memory, or was built without a feature.
    static func exhausted(cause: String) -> Self
    /// The client was stopped.
    static var closed: Self { get }
}

/// The owner of a `CURL`: one request. It must be removed from its multi handle before it is destroyed.
package struct EasyHandle<Failure: CurlError>: ~Copyable {
    /// libcurl's handle, which also identifies the transfer.
    package let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?

    package init() throws(Failure) {
        guard let raw = curl_easy_init() else { throw .exhausted(cause: "curl_easy_init") }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        ccurl_set_error_buffer(raw, errorText)
    }

    deinit {
        curl_easy_cleanup(raw)
        curl_slist_free_all(fields)
        errorText.deallocate()
    }

    package func set(_ option: CURLoption, _ value: Int) throws(Failure) {
        try check(ccurl_set_long(raw, option, value), option)
    }

    package func set(_ option: CURLoption, _ value: String) throws(Failure) {
        try check(ccurl_set_string(raw, option, value), option)
    }

    /// Sets a size, which may exceed 32 bits.
    package func setSize(_ option: CURLoption, _ value: Int) throws(Failure) {
        try check(ccurl_set_offset(raw, option, curl_off_t(value)), option)
    }

    /// Adds request header fields as `name: value`, replacing those of libcurl with the same name.
    package mutating func setFields(_ values: [String]) throws(Failure) {
        for value in values {
            guard let longer = curl_slist_append(fields, value) else { throw .exhausted(cause: "curl_slist_append") }
            fields = longer
        }
        try check(ccurl_set_headers(raw, fields), CURLOPT_HTTPHEADER)
    }

    /// Sets the options that all requests share: nothing comes from the environment or the home directory, certificates are
    /// verified, bodies are left as they are, and no signal is used.
    package func setCommonOptions(userAgent: String, certificateAuthorities: String?) throws(Failure) {
        // Each redirect is a request of its own.
        try set(CURLOPT_FOLLOWLOCATION, 0)
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        // An empty proxy also disables http_proxy and similar variables.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "*")
        try set(CURLOPT_NETRC, 0)
        try set(CURLOPT_USERAGENT, userAgent)
        try set(CURLOPT_HTTP09_ALLOWED, 0)
        try set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        try set(CURLOPT_MAXAGE_CONN, 60)
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let certificateAuthorities { try set(CURLOPT_CAINFO, certificateAuthorities) }
        try set(CURLOPT_NOSIGNAL, 1)
        // Without this option, a timeout during name lookup blocks the loop's thread until the resolver's thread returns.
        try set(CURLOPT_QUICK_EXIT, 1)
    }

    /// Sets the time limits of connecting and of the whole request.
    package func setTimeouts(connect: Duration, total: Duration) throws(Failure) {
        try set(CURLOPT_CONNECTTIMEOUT_MS, min(connect, total).wholeMilliseconds)
        try set(CURLOPT_TIMEOUT_MS, total.wholeMilliseconds)
    }

    /// libcurl's error message. It may contain addresses.
    package func errorMessage(_ code: CURLcode) -> String {
        errorText.pointee != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
    }

    /// Throws if libcurl has refused to set `option`.
    package func check(_ code: CURLcode, _ option: CURLoption) throws(Failure) {
        guard code == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt(\(option.rawValue)) failed: \(code.rawValue)") }
    }
}

extension Duration {
    /// Whole milliseconds, at least 1, because 0 means no limit for libcurl, and at most a day.
    fileprivate var wholeMilliseconds: Int {
        let (seconds, attoseconds) = min(self, .seconds(86_400)).components
        return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

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

/// The owner of a `CURL`: one request. It must be removed from its multi handle before it is destroyed.
package struct EasyHandle: ~Copyable {
    /// libcurl's handle, which also identifies the transfer.
    package let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var headers: UnsafeMutablePointer<curl_slist>?

    package init() throws(FetchError) {
        guard let raw = curl_easy_init() else { throw .exhausted(cause: "curl_easy_init") }
        self.raw = raw
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        ccurl_set_error_buffer(raw, errorText)
    }

    deinit {
        curl_easy_cleanup(raw)
        curl_slist_free_all(headers)
        errorText.deallocate()
    }

    package func set(_ option: CURLoption, _ value: Int) throws(FetchError) {
        try Self.check(ccurl_set_long(raw, option, value), option)
    }

    package func set(_ option: CURLoption, _ value: String) throws(FetchError) {
        try Self.check(ccurl_set_string(raw, option, value), option)
    }

    /// Adds request header fields, replacing those of libcurl with the same name.
    package mutating func setHeaders(_ fields: [String]) throws(FetchError) {
        for field in fields {
            guard let longer = curl_slist_append(headers, field) else { throw .exhausted(cause: "curl_slist_append") }
            headers = longer
        }
        try Self.check(ccurl_set_headers(raw, headers), CURLOPT_HTTPHEADER)
    }

    /// libcurl's error message. It may contain addresses.
    package func errorMessage(_ code: CURLcode) -> String {
        errorText.pointee != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
    }

    /// Throws if libcurl has refused to set `option`.
    static func check(_ code: CURLcode, _ option: CURLoption) throws(FetchError) {
        guard code == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt(\(option.rawValue)) failed: \(code.rawValue)") }
    }
}

extension EasyHandle {
    /// Sets all options of a request except its callbacks and header fields.
    func setOptions(for url: SourceURL, configuration: FetchConfiguration, timeLeft: Duration) throws(FetchError) {
        // Exactly the text that was checked.
        try set(CURLOPT_URL, url.canonical)
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        // Each hop is a request of its own, so that it can be checked.
        try set(CURLOPT_FOLLOWLOCATION, 0)

        // No settings from the environment or the home directory. An empty proxy also disables http_proxy and similar variables.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "*")
        try set(CURLOPT_NETRC, 0)
        try set(CURLOPT_USERAGENT, configuration.userAgent)

        // HTTP/2 if TLS negotiates it, else HTTP/1.1; never HTTP/0.9.
        try set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        try set(CURLOPT_HTTP09_ALLOWED, 0)
        try set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        try set(CURLOPT_MAXAGE_CONN, 60)
        try set(CURLOPT_BUFFERSIZE, 64 << 10)

        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let file = configuration.certificateAuthorities { try set(CURLOPT_CAINFO, file) }

        try set(CURLOPT_CONNECTTIMEOUT_MS, min(configuration.connectTimeout, timeLeft).milliseconds)
        try set(CURLOPT_TIMEOUT_MS, timeLeft.milliseconds)
        try set(CURLOPT_NOSIGNAL, 1)
        // Without this option, a timeout during name lookup blocks the loop's thread until the resolver's thread returns.
        try set(CURLOPT_QUICK_EXIT, 1)
    }
}

extension Duration {
    /// Whole milliseconds, at least 1: for libcurl 0 means no limit.
    fileprivate var milliseconds: Int {
        let (seconds, attoseconds) = components
        return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

/// The owner of a `CURLM`: the transfers in progress and the idle connections.
///
/// All functions must be called on one thread, except ``wake()``, which any thread may call.
struct MultiHandle: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// - Parameter idleConnections: The number of idle connections to keep.
    init(idleConnections: Int) throws(FetchError) {
        guard let raw = curl_multi_init() else { throw .exhausted(cause: "curl_multi_init") }
        self.raw = raw
        setIdleConnections(idleConnections)
    }

    /// Sets the number of idle connections to keep.
    func setIdleConnections(_ count: Int) {
        ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count)
    }

    deinit {
        curl_multi_cleanup(raw)
    }

    func add(_ easy: UnsafeMutableRawPointer) throws(FetchError) {
        try check(curl_multi_add_handle(raw, easy))
    }

    func remove(_ easy: UnsafeMutableRawPointer) {
        curl_multi_remove_handle(raw, easy)
    }

    /// Advances all transfers without waiting.
    func perform() throws(FetchError) {
        var running: Int32 = 0
        try check(curl_multi_perform(raw, &running))
    }

    /// The next transfer that has ended.
    func nextFinished() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            var code = CURLE_OK
            if let easy = ccurl_finished(message, &code) { return (easy, code) }
        }
        return nil
    }

    /// Waits for activity on a connection, for ``wake()``, or for `milliseconds`.
    func wait(milliseconds: Int32) throws(FetchError) {
        try check(curl_multi_poll(raw, nil, 0, milliseconds, nil))
    }

    /// Ends the current call of ``wait(milliseconds:)``, or the next one.
    func wake() {
        curl_multi_wakeup(raw)
    }

    private func check(_ code: CURLMcode) throws(FetchError) {
        guard code == CURLM_OK else { throw .exhausted(cause: String(cString: curl_multi_strerror(code))) }
    }
}

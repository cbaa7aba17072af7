package import CSystem

/// libcurl's process-wide state.
enum CurlLibrary {
    /// Initialises libcurl once; later calls do nothing.
    ///
    /// Call this before other threads start, because TLS libraries may not be thread-safe during initialisation, and after
    /// forking worker processes, so that they contain no libcurl state.
    ///
    /// - Returns: Whether libcurl can be used.
    static func prepare() -> Bool { isReady }

    private static let isReady = curl_global_init(ccurl_global_all) == CURLE_OK
}

/// The owner of a `CURL`, which runs one request or only connects. It must be removed from its multi handle before it is destroyed.
package struct EasyHandle: ~Copyable {
    /// libcurl's handle, which also identifies the transfer.
    package let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?

    package init() throws(HTTPError) {
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

    package func set(_ option: CURLoption, _ value: Int) throws(HTTPError) {
        try check(ccurl_set_long(raw, option, value), option)
    }

    package func set(_ option: CURLoption, _ value: String) throws(HTTPError) {
        try check(ccurl_set_string(raw, option, value), option)
    }

    /// Trusts only the certificates in a file. libcurl would also trust those in the system's directory.
    package func trustOnly(_ file: String) throws(HTTPError) {
        try set(CURLOPT_CAINFO, file)
        try check(ccurl_set_string(raw, CURLOPT_CAPATH, nil), CURLOPT_CAPATH)
    }

    /// Adds request header fields as `name: value`, replacing libcurl's fields of the same name.
    mutating func setFields(_ values: [String]) throws(HTTPError) {
        for value in values {
            guard let longer = curl_slist_append(fields, value) else { throw .exhausted(cause: "curl_slist_append") }
            fields = longer
        }
        try check(ccurl_set_headers(raw, fields), CURLOPT_HTTPHEADER)
    }

    /// Sets the options common to all requests: no files from the home directory, verified certificates, no signals.
    package func setCommonOptions() throws(HTTPError) {
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_NETRC, 0)
        try set(CURLOPT_HTTP09_ALLOWED, 0)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        try set(CURLOPT_MAXAGE_CONN, 60)
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        try set(CURLOPT_NOSIGNAL, 1)
        // Without this option, a timeout during name lookup blocks the loop's thread until the resolver's thread returns.
        try set(CURLOPT_QUICK_EXIT, 1)
    }

    /// Sets the timeouts for connecting and for the whole request.
    package func setTimeouts(connect: Duration, total: Duration) throws(HTTPError) {
        try set(CURLOPT_CONNECTTIMEOUT_MS, min(connect, total).wholeMilliseconds)
        try set(CURLOPT_TIMEOUT_MS, total.wholeMilliseconds)
    }

    /// libcurl's error message. It may contain addresses.
    package func errorMessage(_ code: CURLcode) -> String {
        errorText.pointee != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
    }

    /// The `errno` of the connection that failed; 0 if libcurl has none.
    var connectError: Int32 {
        var number = 0
        return ccurl_get_long(raw, CURLINFO_OS_ERRNO, &number) == CURLE_OK ? Int32(truncatingIfNeeded: number) : 0
    }

    /// Throws if libcurl refused to set `option`.
    package func check(_ code: CURLcode, _ option: CURLoption) throws(HTTPError) {
        guard code == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt(\(option.rawValue)) failed: \(code.rawValue)") }
    }
}

extension Duration {
    /// Whole milliseconds: at least 1, because libcurl treats 0 as no limit, and at most a day.
    fileprivate var wholeMilliseconds: Int {
        let (seconds, attoseconds) = min(self, .seconds(86_400)).components
        return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

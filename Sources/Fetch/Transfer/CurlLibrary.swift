internal import CCurl

/// libcurl's process-wide state.
package enum CurlLibrary {
    /// Sets libcurl up, once; later calls do nothing.
    ///
    /// To be called before other threads begin, since TLS libraries may not expect company. A process that forks workers
    /// forks them before: nothing of libcurl is then in them.
    ///
    /// - Returns: Whether libcurl can be used.
    @discardableResult
    package static func prepare() -> Bool { isReady }

    private static let isReady = curl_global_init(ccurl_global_all) == CURLE_OK

    /// The versions of libcurl and of what it is built on, for logs.
    package static var version: String {
        curl_version().map { String(cString: $0) } ?? ""
    }
}

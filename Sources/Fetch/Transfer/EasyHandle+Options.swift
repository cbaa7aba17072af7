internal import CCurl

extension EasyHandle {
    /// Sets everything about a request but its callbacks and header fields.
    func setOptions(for url: SourceURL, configuration: FetchConfiguration, timeLeft: Duration) throws(FetchError) {
        // The very text that was checked, and nothing made of it.
        try set(CURLOPT_URL, url.canonical)
        try set(CURLOPT_PATH_AS_IS, 1)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        // Each hop is a request of ours, so that it can be checked.
        try set(CURLOPT_FOLLOWLOCATION, 0)

        // Nothing from the environment or the home directory. An empty proxy also switches off http_proxy and its kin.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NOPROXY, "*")
        try set(CURLOPT_NETRC, 0)
        try set(CURLOPT_USERAGENT, configuration.userAgent)

        // HTTP/2 where TLS offers it, else HTTP/1.1; an answer without a head is none.
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
        // Without it, giving up on a slow name server blocks the loop's thread until the resolver's thread comes back.
        try set(CURLOPT_QUICK_EXIT, 1)
    }
}

extension Duration {
    /// In whole milliseconds, at least 1: libcurl takes 0 for «for ever».
    fileprivate var milliseconds: Int {
        let (seconds, attoseconds) = components
        return max(1, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}

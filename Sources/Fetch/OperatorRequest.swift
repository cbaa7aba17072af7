internal import CCurl
internal import Curl

/// A request to a server that the operator has named in the settings. The address policy for sources does not apply to it.
package struct OperatorRequest: Sendable, Equatable {
    package let url: String
    package let method: String
    /// As `Name: value`.
    package let fields: [String]
    package let body: String

    package init(url: String, method: String, fields: [String], body: String) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
    }

    /// Sends the request and returns the status of the response. Redirects are not followed, and the body of the response is discarded.
    ///
    /// Blocks, for at most `timeout`.
    ///
    /// - Throws: ``FetchError`` if no response arrives.
    package func send(userAgent: String, timeout: Duration) throws(FetchError) -> Int {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        var easy = try EasyHandle<FetchError>()
        try easy.setCommonOptions(userAgent: userAgent, certificateAuthorities: nil)
        try easy.setTimeouts(connect: .seconds(5), total: timeout)
        try easy.set(CURLOPT_URL, url)
        if method == "HEAD" {
            // Otherwise libcurl would wait for the body that the fields of the response announce.
            try easy.set(CURLOPT_NOBODY, 1)
        } else {
            try easy.set(CURLOPT_POSTFIELDSIZE, body.utf8.count)
            try easy.set(CURLOPT_COPYPOSTFIELDS, body)
            try easy.set(CURLOPT_CUSTOMREQUEST, method)
        }
        // Without `Expect`, libcurl would wait for 100 before it sends a long body.
        try easy.setFields(fields + ["Expect:"])
        guard ccurl_set_write(easy.raw, discard, nil) == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt") }
        let code = curl_easy_perform(easy.raw)
        var status = 0
        let hasStatus = ccurl_get_long(easy.raw, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status > 0
        guard code == CURLE_OK, hasStatus else { throw .unreachable(cause: easy.errorMessage(code)) }
        return status
    }
}

private let discard: curl_write_callback = { _, size, count, _ in size * count }

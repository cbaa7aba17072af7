internal import CCurl

/// The owner of a `CURL`: one request.
///
/// It must have been removed from its multi handle before it goes.
struct EasyHandle: ~Copyable {
    /// libcurl's handle, which also identifies the transfer.
    let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var headers: UnsafeMutablePointer<curl_slist>?

    init() throws(FetchError) {
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

    func set(_ option: CURLoption, _ value: Int) throws(FetchError) {
        try check(ccurl_set_long(raw, option, value), option)
    }

    func set(_ option: CURLoption, _ value: String) throws(FetchError) {
        try check(ccurl_set_string(raw, option, value), option)
    }

    /// Adds request header fields to, or in place of, libcurl's own.
    mutating func setHeaders(_ fields: [String]) throws(FetchError) {
        for field in fields {
            guard let longer = curl_slist_append(headers, field) else { throw .exhausted(cause: "curl_slist_append") }
            headers = longer
        }
        try check(ccurl_set_headers(raw, headers), CURLOPT_HTTPHEADER)
    }

    /// Directs all of libcurl's callbacks at `transfer`, which has to outlive the request.
    func setCallbacks(_ transfer: Transfer) throws(FetchError) {
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        try check(ccurl_set_write(raw, receiveBody, context), CURLOPT_WRITEFUNCTION)
        try check(ccurl_set_header(raw, receiveHeader, context), CURLOPT_HEADERFUNCTION)
        try check(ccurl_set_open_socket(raw, openSocket, context), CURLOPT_OPENSOCKETFUNCTION)
        try check(ccurl_set_prerequest(raw, checkConnection, context), CURLOPT_PREREQFUNCTION)
    }

    /// A time that libcurl took, counted from the request's start.
    func time(_ info: CURLINFO) -> Duration {
        var microseconds: curl_off_t = 0
        guard ccurl_get_offset(raw, info, &microseconds) == CURLE_OK else { return .zero }
        return .microseconds(microseconds)
    }

    /// libcurl's own words on what went wrong; it may name addresses.
    func errorMessage(_ code: CURLcode) -> String {
        errorText.pointee != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(FetchError) {
        guard code == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt(\(option.rawValue)) failed: \(code.rawValue)") }
    }
}

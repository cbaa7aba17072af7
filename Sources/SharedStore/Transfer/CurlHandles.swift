internal import CCurl

/// libcurl's process-wide state.
enum CurlGlobals {
    /// Whether libcurl can be used. Initialises it once; libcurl counts initialisations, so other code may do the same.
    static let isReady = curl_global_init(ccurl_global_all) == CURLE_OK
}

/// The owner of a `CURL`: one request. It must be removed from its multi handle before it is destroyed.
struct CurlEasy: ~Copyable {
    /// libcurl's handle, which also identifies the transfer.
    let raw: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var fields: UnsafeMutablePointer<curl_slist>?

    init() throws(StoreError) {
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

    func set(_ option: CURLoption, _ value: Int) throws(StoreError) {
        try check(ccurl_set_long(raw, option, value), option)
    }

    func set(_ option: CURLoption, _ value: String) throws(StoreError) {
        try check(ccurl_set_string(raw, option, value), option)
    }

    /// Sets a size, which may exceed 32 bits.
    func setSize(_ option: CURLoption, _ value: Int) throws(StoreError) {
        try check(ccurl_set_offset(raw, option, curl_off_t(value)), option)
    }

    /// Sets the request's header fields, each as `name: value`.
    mutating func setFields(_ values: [String]) throws(StoreError) {
        for value in values {
            guard let longer = curl_slist_append(fields, value) else { throw .exhausted(cause: "curl_slist_append") }
            fields = longer
        }
        try check(ccurl_set_headers(raw, fields), CURLOPT_HTTPHEADER)
    }

    /// Sets the callbacks; `transfer` has to outlive the request.
    func setCallbacks(_ transfer: Transfer) throws(StoreError) {
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        try check(ccurl_set_write(raw, receiveBody, context), CURLOPT_WRITEFUNCTION)
        try check(ccurl_set_header(raw, receiveHeadLine, context), CURLOPT_HEADERFUNCTION)
        try check(ccurl_set_read(raw, sendBody, context), CURLOPT_READFUNCTION)
        try check(ccurl_set_seek(raw, seekBody, context), CURLOPT_SEEKFUNCTION)
    }

    /// libcurl's error message.
    func message(_ code: CURLcode) -> String {
        errorText.pointee != 0 ? String(cString: errorText) : String(cString: curl_easy_strerror(code))
    }

    private func check(_ code: CURLcode, _ option: CURLoption) throws(StoreError) {
        guard code == CURLE_OK else { throw .exhausted(cause: "curl_easy_setopt(\(option.rawValue)) failed: \(code.rawValue)") }
    }
}

/// The owner of a `CURLM`: the transfers under way and the idle connections.
///
/// All functions must be called on one thread, except ``wake()``, which any thread may call.
struct CurlMulti: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// - Parameter connections: The largest number of open connections. Further requests wait for one.
    init(connections: Int) throws(StoreError) {
        guard let raw = curl_multi_init() else { throw .exhausted(cause: "curl_multi_init") }
        self.raw = raw
        ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, connections)
        ccurl_multi_set_long(raw, CURLMOPT_MAX_TOTAL_CONNECTIONS, connections)
    }

    deinit {
        curl_multi_cleanup(raw)
    }

    func add(_ easy: borrowing CurlEasy) throws(StoreError) {
        try check(curl_multi_add_handle(raw, easy.raw))
    }

    func remove(_ easy: borrowing CurlEasy) {
        curl_multi_remove_handle(raw, easy.raw)
    }

    /// Advances all transfers without waiting.
    func perform() throws(StoreError) {
        var running: Int32 = 0
        try check(curl_multi_perform(raw, &running))
    }

    /// The handle and the result of the next transfer that has ended.
    func nextFinished() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            var code = CURLE_OK
            if let easy = ccurl_finished(message, &code) { return (easy, code) }
        }
        return nil
    }

    /// Waits for activity on a connection, for a timer of libcurl, or for ``wake()``.
    func wait() throws(StoreError) {
        try check(curl_multi_poll(raw, nil, 0, 60_000, nil))
    }

    /// Ends the current call of ``wait()``, or the next one.
    func wake() {
        curl_multi_wakeup(raw)
    }

    private func check(_ code: CURLMcode) throws(StoreError) {
        guard code == CURLM_OK else { throw .exhausted(cause: String(cString: curl_multi_strerror(code))) }
    }
}

// MARK: Callbacks of libcurl

private func transfer(_ context: UnsafeMutableRawPointer) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
}

/// `curl_write_callback`: a count other than that of the bytes ends the transfer.
private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    // libcurl documents that `size` is 1.
    let piece = UnsafeRawBufferPointer(start: bytes, count: count)
    return transfer(context).receiveBody(piece) ? count : -1
}

/// `curl_write_callback` for a line of the response's head.
private func receiveHeadLine(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    return transfer(context).receiveHeadLine(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : -1
}

/// `curl_read_callback`.
private func sendBody(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return Int(CURL_READFUNC_ABORT) }
    let space = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
    return transfer(context).fill(space) ?? Int(CURL_READFUNC_ABORT)
}

/// `curl_seek_callback`.
private func seekBody(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    guard let context, origin == 0, offset >= 0 else { return CURL_SEEKFUNC_FAIL }
    transfer(context).seek(to: Int(offset))
    return CURL_SEEKFUNC_OK
}

internal import CSystem

/// The owner of a `CURLM`, which holds the transfers in progress and the idle connections.
///
/// All functions must be called on one thread, except ``wake()``, which any thread may call.
struct MultiHandle: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    init(idleConnections: Int) throws(HTTPError) {
        guard let raw = curl_multi_init() else { throw .exhausted(cause: "curl_multi_init") }
        self.raw = raw
        setIdleConnections(idleConnections)
    }

    deinit {
        curl_multi_cleanup(raw)
    }

    /// Sets the number of idle connections to keep.
    func setIdleConnections(_ count: Int) {
        ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, count)
    }

    func add(_ easy: UnsafeMutableRawPointer) throws(HTTPError) {
        try check(curl_multi_add_handle(raw, easy))
    }

    func remove(_ easy: UnsafeMutableRawPointer) {
        curl_multi_remove_handle(raw, easy)
    }

    /// Advances all transfers without waiting.
    func perform() throws(HTTPError) {
        var running: Int32 = 0
        try check(curl_multi_perform(raw, &running))
    }

    func nextFinished() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            var code = CURLE_OK
            if let easy = ccurl_finished(message, &code) { return (easy, code) }
        }
        return nil
    }

    /// Waits for activity on a connection, a libcurl timer, ``wake()``, or at most `milliseconds`.
    func wait(milliseconds: Int32) throws(HTTPError) {
        try check(curl_multi_poll(raw, nil, 0, milliseconds, nil))
    }

    /// Ends the current call of ``wait(milliseconds:)``, or the next one.
    func wake() {
        curl_multi_wakeup(raw)
    }

    private func check(_ code: CURLMcode) throws(HTTPError) {
        guard code == CURLM_OK else { throw .exhausted(cause: String(cString: curl_multi_strerror(code))) }
    }
}

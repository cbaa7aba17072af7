internal import CCurl

/// The owner of a `CURLM`: the transfers under way and the connections kept for later ones.
///
/// Everything is called on one thread, save ``wake()``, which libcurl lets any thread call.
struct MultiHandle: ~Copyable {
    private let raw: UnsafeMutableRawPointer

    /// - Parameter idleConnections: How many connections are kept for later requests.
    init(idleConnections: Int) throws(FetchError) {
        guard let raw = curl_multi_init() else { throw .exhausted(cause: "curl_multi_init") }
        self.raw = raw
        ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, idleConnections)
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

    /// Does what can be done without waiting.
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

    /// Waits for something to do on a connection, for ``wake()``, or for `milliseconds`.
    func wait(milliseconds: Int32) throws(FetchError) {
        try check(curl_multi_poll(raw, nil, 0, milliseconds, nil))
    }

    /// Ends ``wait(milliseconds:)``, also one that is yet to begin.
    func wake() {
        curl_multi_wakeup(raw)
    }

    private func check(_ code: CURLMcode) throws(FetchError) {
        guard code == CURLM_OK else { throw .exhausted(cause: String(cString: curl_multi_strerror(code))) }
    }
}

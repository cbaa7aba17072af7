internal import CCurl
internal import Curl

extension StoreError: CurlError {}

extension Transfer {
    /// Makes libcurl call this transfer for `easy`, which must not outlive it.
    func receiveCallbacks(of easy: borrowing EasyHandle<StoreError>) throws(StoreError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.check(ccurl_set_write(easy.raw, bodyCallback, context), CURLOPT_WRITEFUNCTION)
        try easy.check(ccurl_set_header(easy.raw, headCallback, context), CURLOPT_HEADERFUNCTION)
        try easy.check(ccurl_set_read(easy.raw, readCallback, context), CURLOPT_READFUNCTION)
        try easy.check(ccurl_set_seek(easy.raw, seekCallback, context), CURLOPT_SEEKFUNCTION)
    }
}

private func transfer(_ context: UnsafeMutableRawPointer) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
}

/// `curl_write_callback`: a count other than that of the bytes ends the transfer.
private func bodyCallback(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    // libcurl documents that `size` is 1.
    let piece = UnsafeRawBufferPointer(start: bytes, count: count)
    return transfer(context).receiveBody(piece) ? count : -1
}

/// `curl_write_callback` for a line of the response's head.
private func headCallback(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return 0 }
    return transfer(context).receiveHeadLine(UnsafeRawBufferPointer(start: bytes, count: count)) ? count : -1
}

/// `curl_read_callback`.
private func readCallback(
    _ buffer: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let context else { return Int(CURL_READFUNC_ABORT) }
    let space = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
    return transfer(context).fill(space) ?? Int(CURL_READFUNC_ABORT)
}

/// `curl_seek_callback`.
private func seekCallback(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    guard let context, origin == 0, offset >= 0 else { return CURL_SEEKFUNC_FAIL }
    transfer(context).seek(to: Int(offset))
    return CURL_SEEKFUNC_OK
}

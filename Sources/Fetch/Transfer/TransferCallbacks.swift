internal import CCurl
internal import Curl
internal import Glibc

// libcurl calls these functions on the transfer loop's thread, inside `curl_multi_perform`. They only forward to the transfer
// that they were set for.

extension Transfer {
    /// Sets the callbacks of `easy`, which must not outlive this transfer.
    func receiveCallbacks(of easy: borrowing EasyHandle<FetchError>) throws(FetchError) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.check(ccurl_set_write(easy.raw, bodyCallback, context), CURLOPT_WRITEFUNCTION)
        try easy.check(ccurl_set_header(easy.raw, headerCallback, context), CURLOPT_HEADERFUNCTION)
        try easy.check(ccurl_set_open_socket(easy.raw, socketCallback, context), CURLOPT_OPENSOCKETFUNCTION)
        try easy.check(ccurl_set_prerequest(easy.raw, requestCallback, context), CURLOPT_PREREQFUNCTION)
    }
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

/// `CURLOPT_WRITEFUNCTION`: any result but the number of received bytes ends the transfer.
private let bodyCallback: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    guard let transfer = transfer(context) else { return 0 }
    return transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
}

/// `CURLOPT_HEADERFUNCTION`: as ``bodyCallback``, with one line of the head per call.
private let headerCallback: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    guard let transfer = transfer(context) else { return 0 }
    return transfer.receiveHeader(UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
}

/// `CURLOPT_OPENSOCKETFUNCTION`: the only function that opens sockets, and only for allowed addresses.
private let socketCallback: curl_opensocket_callback = { context, _, target in
    guard let target, let transfer = transfer(context), let address = ccurl_address(target) else { return ccurl_bad_socket }
    guard transfer.allowsConnection(to: address, length: Int(target.pointee.addrlen)) else { return ccurl_bad_socket }
    let type = target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    let number = socket(target.pointee.family, type, target.pointee.protocol)
    transfer.didOpenSocket(number)
    return number
}

/// `CURLOPT_PREREQFUNCTION`: checks reused connections, which did not pass through ``socketCallback`` for this request.
private let requestCallback: curl_prereq_callback = { context, address, _, port, localPort in
    guard let address, let transfer = transfer(context),
        transfer.allowsRequest(to: String(cString: address), port: Int(port), localPort: Int(localPort))
    else { return Int32(CURL_PREREQFUNC_ABORT) }
    return Int32(CURL_PREREQFUNC_OK)
}

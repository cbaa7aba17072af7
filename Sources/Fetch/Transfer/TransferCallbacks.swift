internal import CCurl
internal import CLinux
internal import Glibc

// The functions that libcurl calls while it performs. All run on the transfer loop's thread, inside `curl_multi_perform`,
// and only pass on to the transfer that they were set for.

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer? {
    context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
}

/// `CURLOPT_WRITEFUNCTION`: any result but the number of bytes given ends the transfer.
let receiveBody: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    guard let transfer = transfer(context) else { return 0 }
    return transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
}

/// `CURLOPT_HEADERFUNCTION`: the same, a line of the head at a time.
let receiveHeader: curl_write_callback = { bytes, size, count, context in
    let length = size * count
    guard let transfer = transfer(context) else { return 0 }
    return transfer.receiveHeader(UnsafeRawBufferPointer(start: bytes, count: length)) ? length : 0
}

/// `CURLOPT_OPENSOCKETFUNCTION`: the one place where sockets are made, and only for addresses that are allowed.
let openSocket: curl_opensocket_callback = { context, _, target in
    guard let target, let transfer = transfer(context), let address = ccurl_address(target) else { return ccurl_bad_socket }
    guard transfer.allowsConnection(to: address, length: Int(target.pointee.addrlen)) else { return ccurl_bad_socket }
    let type = target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
    let number = socket(target.pointee.family, type, target.pointee.protocol)
    transfer.didOpenSocket(number)
    return number
}

/// `CURLOPT_PREREQFUNCTION`: a connection that was used before did not pass through ``openSocket`` for this request.
let checkConnection: curl_prereq_callback = { context, address, _, port, localPort in
    guard let address, let transfer = transfer(context),
        transfer.allowsRequest(to: String(cString: address), port: Int(port), localPort: Int(localPort))
    else { return Int32(CURL_PREREQFUNC_ABORT) }
    return Int32(CURL_PREREQFUNC_OK)
}

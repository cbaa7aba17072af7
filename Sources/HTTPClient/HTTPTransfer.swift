internal import CSystem
internal import Glibc
internal import SystemIO

/// A request running on a libcurl handle. Used only on the thread that runs it.
final class HTTPTransfer {
    private let request: ClientRequest
    private let call: any HTTPCall
    private let sockets: SocketTable
    private let onFreshConnection: Bool
    private(set) var easy: EasyHandle

    private var head = HTTPHead()
    /// When the head was complete.
    private var headEnd: ContinuousClock.Instant?
    private var stall: StallMeter
    /// Bytes of the request body that libcurl has read.
    private var sent = 0
    private var failure: HTTPError?
    private var exhaustion: String?
    private var didSendRequest = false
    private var hasUnreadInput = false
    /// Small pieces of the body that are coalesced for the call.
    private var held: [UInt8] = []
    private(set) var receivedBytes = 0
    private(set) var openedSockets = 0
    private(set) var refusedSockets = 0
    /// The reused connection's socket, until the response head arrives. On new connections, the kernel acknowledges at once.
    private var reusedSocket: Int32?

    /// Prepares a request, which begins when the handle is run or added to a multi handle.
    ///
    /// - Parameters:
    ///   - timeLeft: The timeout of the request.
    ///   - sockets: The client's socket table.
    ///   - onFreshConnection: Whether the request must use a new connection.
    init(
        _ request: ClientRequest, for call: any HTTPCall, timeLeft: Duration, sockets: SocketTable,
        onFreshConnection: Bool = false
    ) throws(HTTPError) {
        self.request = request
        self.call = call
        self.sockets = sockets
        self.onFreshConnection = onFreshConnection
        easy = try EasyHandle()
        stall = StallMeter(rate: request.stallRate, window: request.stallWindow)
        let context = Unmanaged.passUnretained(self).toOpaque()
        try easy.check(ccurl_set_write(easy.raw, bodyCallback, context), CURLOPT_WRITEFUNCTION)
        try easy.check(ccurl_set_header(easy.raw, headCallback, context), CURLOPT_HEADERFUNCTION)
        try easy.check(ccurl_set_read(easy.raw, readCallback, context), CURLOPT_READFUNCTION)
        try easy.check(ccurl_set_seek(easy.raw, seekCallback, context), CURLOPT_SEEKFUNCTION)
        try easy.check(ccurl_set_open_socket(easy.raw, socketCallback, context), CURLOPT_OPENSOCKETFUNCTION)
        try easy.check(ccurl_set_prerequest(easy.raw, requestCallback, context), CURLOPT_PREREQFUNCTION)
        try easy.setCommonOptions()
        try setConnectionOptions(timeLeft)
        try setMessageOptions()
    }

    private func setConnectionOptions(_ timeLeft: Duration) throws(HTTPError) {
        try easy.set(CURLOPT_URL, request.url)
        // With HTTP/2, a server that sends empty frames without a pause would occupy the thread: libcurl 7.88 reads until nothing
        // is left.
        try easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try easy.setTimeouts(connect: request.connectTimeout, total: timeLeft)
        try easy.set(CURLOPT_MAXLIFETIME_CONN, Int(request.connectionLifetime.components.seconds))
        if call.checksAddresses { try easy.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1) }
        if onFreshConnection { try easy.set(CURLOPT_FRESH_CONNECT, 1) }
        if let path = request.unixPath { try easy.set(CURLOPT_UNIX_SOCKET_PATH, path) }
        if let file = request.certificateAuthorities { try easy.trustOnly(file) }
        if request.usesProxies {
            try easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
        } else {
            // An empty proxy also disables http_proxy and similar variables.
            try easy.set(CURLOPT_PROXY, "")
            try easy.set(CURLOPT_NOPROXY, "*")
        }
    }

    private func setMessageOptions() throws(HTTPError) {
        try easy.set(CURLOPT_USERAGENT, request.userAgent)
        try easy.set(CURLOPT_BUFFERSIZE, request.bufferSize)
        try easy.set(CURLOPT_FOLLOWLOCATION, request.maxRedirects > 0 ? 1 : 0)
        try easy.set(CURLOPT_MAXREDIRS, request.maxRedirects)
        // An empty string selects every coding that libcurl can decode.
        if request.acceptsCompression { try easy.set(CURLOPT_ACCEPT_ENCODING, "") }
        try easy.set(CURLOPT_HTTP_CONTENT_DECODING, request.acceptsCompression ? 1 : 0)
        var fields = request.fields
        if let body = request.body {
            try easy.set(CURLOPT_UPLOAD, 1)
            let size = CURLOPT_INFILESIZE_LARGE
            try easy.check(ccurl_set_offset(easy.raw, size, curl_off_t(body.length)), size)
            try easy.set(CURLOPT_UPLOAD_BUFFERSIZE, max(16 << 10, request.bufferSize))
            // By default, libcurl waits a second for a server that ignores `Expect`.
            if request.expectsContinue { try easy.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 100) } else { fields.append("Expect:") }
        }
        switch request.method {
        case "GET" where request.body == nil: try easy.set(CURLOPT_HTTPGET, 1)
        // Otherwise libcurl would wait for the body announced by the response header.
        case "HEAD": try easy.set(CURLOPT_NOBODY, 1)
        default: try easy.set(CURLOPT_CUSTOMREQUEST, request.method)
        }
        let signed = request.signer?.sign(request.method, request.url, fields: fields, digest: request.digest)
        try easy.setFields(signed ?? fields)
    }

    // MARK: libcurl callbacks

    /// Opens a socket unless the call refuses its address.
    fileprivate func openSocket(_ target: UnsafePointer<curl_sockaddr>) -> Int32 {
        let address = ccurl_address(target)
        if call.checksAddresses {
            let ip = address.flatMap { IPAddress($0, length: Int(target.pointee.addrlen)) }
            guard allows(ip, port: address.map { IPAddress.port($0) } ?? 0) else { return ccurl_bad_socket }
        }
        let type = target.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue)
        let number = socket(target.pointee.family, type, target.pointee.protocol)
        if number >= 0 {
            openedSockets += 1
            sockets.insert(number)
        } else if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
            exhaustion = SystemError.last("socket").description
        }
        return number
    }

    /// Whether the request may be sent on the connection selected by libcurl. A reused connection did not pass through
    /// ``openSocket(_:)`` for this request.
    fileprivate func allowsRequest(to address: UnsafePointer<CChar>?, port: Int, localPort: Int) -> Bool {
        defer { didSendRequest = true }
        let ip = address.flatMap { IPAddress(String(cString: $0)) }
        if isOnUsedConnection, let ip {
            reusedSocket = sockets.number(localPort: localPort, remote: ip, remotePort: port)
        }
        guard call.checksAddresses else { return true }
        guard allows(ip, port: port), ip != nil else { return false }
        // Surplus bytes of an origin that sent more than it declared would be parsed as the response to this request. libcurl
        // before 8.0 does not check for them.
        if isOnUsedConnection {
            hasUnreadInput = reusedSocket.map(SocketTable.hasUnreadInput) ?? false
            if isEncrypted { hasUnreadInput = ccurl_has_unread_input(easy.raw, hasUnreadInput) }
        }
        return !hasUnreadInput
    }

    private func allows(_ ip: IPAddress?, port: Int) -> Bool {
        if call.allows(ip, port: port) { return true }
        refusedSockets += 1
        return false
    }

    /// Whether the request has no connection yet, because the name of its host is being looked up.
    var isLookingUp: Bool { openedSockets == 0 && refusedSockets == 0 && !didSendRequest }

    private var isOnUsedConnection: Bool { openedSockets == 0 && !onFreshConnection }
    private var isEncrypted: Bool { request.url.lowercased().hasPrefix("https:") }

    /// Whether the response is a 408 by which the server closes an idle connection (RFC 9110 section 15.5.9). It may have been sent
    /// before the request.
    private var isFarewell: Bool { head.status == 408 && isOnUsedConnection }

    /// Receives a line of the head. Returns false to end the transfer.
    fileprivate func receiveHead(_ line: UnsafeRawBufferPointer) -> Bool {
        stall.receive(line.count)
        if let socket = reusedSocket.take() { SocketTable.acknowledge(socket) }
        // libcurl has followed a redirect, and another head begins.
        if head.isComplete, request.maxRedirects > 0, line.starts(with: "HTTP/".utf8) { head = HTTPHead() }
        let wasComplete = head.isComplete
        if let fault = head.receive(line, maxSize: request.maxHeadBytes) {
            failure = .invalidResponse(cause: fault)
            return false
        }
        guard head.isComplete, !wasComplete else { return true }
        // libcurl may follow a redirect instead.
        if request.maxRedirects == 0 { headEnd = .now }
        return !isFarewell && call.receive(head)
    }

    /// Pieces of the body below this size are coalesced. Otherwise a server that sends single-byte chunks would occupy the
    /// thread and delay other transfers.
    private static let smallPart = 4 << 10

    /// Receives a piece of the body. Returns false to end the transfer.
    fileprivate func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        receivedBytes += bytes.count
        stall.receive(bytes.count)
        if held.isEmpty, bytes.count >= Self.smallPart { return call.receive(bytes) }
        held.append(contentsOf: bytes)
        return held.count < Self.smallPart || passOn()
    }

    /// Passes on the coalesced pieces of the body when no more bytes arrive for now. Returns false to end the transfer.
    func passOn() -> Bool {
        guard !held.isEmpty else { return true }
        defer { held.removeAll(keepingCapacity: true) }
        return held.withUnsafeBytes(call.receive)
    }

    /// Fills `space` with the next bytes of the request body. Returns nil if they cannot be read.
    fileprivate func fill(_ space: UnsafeMutableRawBufferPointer) -> Int? {
        guard let body = request.body else { return 0 }
        let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<min(space.count, body.length - sent)])
        switch body {
        case .bytes(let bytes): wanted.copyBytes(from: bytes[sent..<sent + wanted.count])
        case .file(let file, _):
            do throws(SystemError) {
                guard try file.read(into: wanted, at: sent) == wanted.count else {
                    throw SystemError("read", code: ENODATA)
                }
            } catch {
                failure = .file(error)
                return nil
            }
        }
        sent += wanted.count
        return wanted.count
    }

    /// Moves the read position in the request body to `offset`.
    fileprivate func seek(to offset: Int) {
        sent = min(offset, request.body?.length ?? 0)
    }

    // MARK: Completion

    /// The interval between stall checks; nil for a request without a minimum rate.
    var stallCheckInterval: Duration? { request.stallRate > 0 ? request.stallWindow / 4 : nil }

    /// The longest time for which a body that is not needed is received.
    private static let longestDiscard = Duration.seconds(2)

    /// Whether the response has started but is too slow.
    func isStalled(at now: ContinuousClock.Instant) -> Bool {
        if let headEnd, !call.needsBody, now - headEnd > Self.longestDiscard { return true }
        return stall.isStalled(at: now, hasBegun: head.status >= 200)
    }

    /// The result of a transfer that its call ended for its own reason.
    static let refused = HTTPError.interrupted(cause: "the body was refused")

    /// Returns the result of a transfer that ended with `code`.
    func result(_ code: CURLcode) -> Result<Void, HTTPError> {
        if let failure { return .failure(failure) }
        guard passOn() else { return .failure(Self.refused) }
        guard code == CURLE_OK else { return .failure(error(for: code)) }
        // libcurl treats a head cut off by the end of the connection as a response without a body.
        return head.isComplete ? .success(()) : .failure(.interrupted(cause: "its head is incomplete"))
    }

    /// Whether a reused connection was unusable, so that the request must be repeated on a new connection.
    func isStale(_ result: Result<Void, HTTPError>) -> Bool {
        if hasUnreadInput { return true }
        return switch result {
        case .failure(.interrupted), .failure(.invalidResponse): isFarewell || head.status == 0 && isOnUsedConnection
        default: false
        }
    }

    private func error(for code: CURLcode) -> HTTPError {
        let cause = easy.errorMessage(code)
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            // The resolver does not report that it ran out of descriptors.
            if DescriptorLimit.isShort() { return .exhausted(cause: SystemError("resolve", code: EMFILE).description) }
            return .unreachable(cause: cause)
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_PROXY, CURLE_ABORTED_BY_CALLBACK:
            if let exhaustion { return .exhausted(cause: exhaustion) }
            // A name may have several addresses: the server counts as refused only if no address was left to try.
            if refusedSockets > 0, openedSockets == 0 || code == CURLE_ABORTED_BY_CALLBACK { return .addressRefused }
            // libcurl's message names the host and port of the URL, although it connected to the socket.
            if request.unixPath != nil, easy.connectError != 0 {
                return .unreachable(cause: SystemError("connect", code: easy.connectError).description)
            }
            return .unreachable(cause: cause)
        case CURLE_OPERATION_TIMEDOUT:
            if !didSendRequest { return .timedOut(.connect, cause: cause) }
            return .timedOut(head.isComplete && (200...299).contains(head.status) ? .body : .head, cause: cause)
        case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_SEND_FAIL_REWIND:
            return .interrupted(cause: cause)
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_CERTPROBLEM,
            CURLE_SSL_CIPHER:
            return .tls(cause: cause)
        case CURLE_SSL_CACERT_BADFILE, CURLE_FAILED_INIT:
            return .misconfigured(cause: cause)
        case CURLE_OUT_OF_MEMORY:
            // libcurl also reports this for a line that exceeds its buffer limit.
            return !head.isComplete && didSendRequest
                ? .invalidResponse(cause: "line of the head too long") : .exhausted(cause: cause)
        default:
            return .invalidResponse(cause: cause)
        }
    }
}

// libcurl calls these functions on the thread of the transfer that is their context. The transfer outlives its handle.

private func transfer(_ context: UnsafeMutableRawPointer?) -> HTTPTransfer? {
    context.map { Unmanaged<HTTPTransfer>.fromOpaque($0).takeUnretainedValue() }
}

/// `CURLOPT_WRITEFUNCTION`: any result other than the number of received bytes ends the transfer.
private let bodyCallback: curl_write_callback = { bytes, size, count, context in
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context)?.receiveBody(piece) == true ? piece.count : -1
}

/// `CURLOPT_HEADERFUNCTION`: like ``bodyCallback``, with one line of the head per call.
private let headCallback: curl_write_callback = { bytes, size, count, context in
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context)?.receiveHead(line) == true ? line.count : -1
}

/// `CURLOPT_READFUNCTION`.
private let readCallback: curl_read_callback = { buffer, size, count, context in
    transfer(context)?.fill(UnsafeMutableRawBufferPointer(start: buffer, count: size * count)) ?? Int(CURL_READFUNC_ABORT)
}

/// `CURLOPT_SEEKFUNCTION`.
private let seekCallback: curl_seek_callback = { context, offset, origin in
    guard let transfer = transfer(context), origin == 0, offset >= 0 else { return CURL_SEEKFUNC_FAIL }
    transfer.seek(to: Int(offset))
    return CURL_SEEKFUNC_OK
}

/// `CURLOPT_OPENSOCKETFUNCTION`: the only function that opens sockets.
private let socketCallback: curl_opensocket_callback = { context, _, target in
    guard let target, let transfer = transfer(context) else { return ccurl_bad_socket }
    return transfer.openSocket(target)
}

/// `CURLOPT_PREREQFUNCTION`.
private let requestCallback: curl_prereq_callback = { context, address, _, port, localPort in
    let isAllowed = transfer(context)?.allowsRequest(to: address, port: Int(port), localPort: Int(localPort)) ?? false
    return isAllowed ? Int32(CURL_PREREQFUNC_OK) : Int32(CURL_PREREQFUNC_ABORT)
}

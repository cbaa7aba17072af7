internal import CCurl
internal import CLinux
internal import Curl
internal import Glibc
internal import SystemIO

/// One request to one origin: a fetch, or one hop of it. Only the transfer loop's thread uses it.
final class Transfer {
    let url: SourceURL
    private let settings: FetchSettings
    private let ownEndpoints: OwnEndpoints
    private let sockets: SocketTable
    /// Set for an object in S3.
    private let bucket: BucketAccess?
    private let arriving: ArrivingSource
    private let redirects: RedirectDirectives
    private let isConditional: Bool
    /// Whether the request sends a document, and its response has no content to receive.
    private let isDelivery: Bool
    private let onFreshConnection: Bool
    private(set) var easy: EasyHandle<FetchError>

    private(set) var head = ResponseHead()
    private var sink: BodySink?
    /// Nil if the body is the source itself.
    private var decoder: ContentDecoder?
    private var stall: StallMeter
    private var failure: FetchError?
    private var refusal: AddressRefusal?
    private var exhaustion: String?
    private var didSendRequest = false
    private var needsFreshConnection = false
    private(set) var openedSockets = 0
    private(set) var refusedSockets = 0
    private(set) var bodyBytes = 0

    /// Prepares a request; it begins when the handle is added to the multi handle.
    ///
    /// - Parameters:
    ///   - document: Sent with POST; nil for a fetch.
    ///   - arriving: Shows the bytes of the body while they arrive.
    ///   - redirects: Those that led to the URL.
    ///   - timeLeft: The time limit of the whole request.
    ///   - onFreshConnection: Whether the request must use a new connection.
    init(
        _ url: SourceURL, validators: SourceValidators, document: [UInt8]?, fields: [String], arriving: ArrivingSource,
        redirects: RedirectDirectives, settings: FetchSettings, ownEndpoints: OwnEndpoints, sockets: SocketTable,
        timeLeft: Duration, onFreshConnection: Bool
    ) throws(FetchError) {
        self.url = url
        self.settings = settings
        self.ownEndpoints = ownEndpoints
        self.sockets = sockets
        bucket = url.bucket.flatMap { settings.configuration.buckets[$0] }
        self.arriving = arriving
        self.redirects = redirects
        isConditional = !validators.isEmpty
        isDelivery = document != nil
        self.onFreshConnection = onFreshConnection
        easy = try EasyHandle<FetchError>()
        sink = BodySink(limit: settings.configuration.maxBytes)
        stall = StallMeter(rate: settings.configuration.stallRate, window: settings.configuration.stallTimeout)
        try receiveCallbacks(of: easy)
        try setOptions(timeLeft: timeLeft)
        if let document {
            try easy.setSize(CURLOPT_POSTFIELDSIZE_LARGE, document.count)
            try easy.set(CURLOPT_COPYPOSTFIELDS, String(decoding: document, as: UTF8.self))
            // The document is small, so libcurl need not ask first whether the receiver wants it (Expect: 100-continue).
            try easy.setFields(settings.deliveryHeaders + ["Expect:"] + fields)
        } else {
            let fields = settings.headers + Self.conditions(validators) + fields
            try easy.setFields(bucket?.signer?.sign("GET", url.requestText, fields: fields) ?? fields)
        }
    }

    private func setOptions(timeLeft: Duration) throws(FetchError) {
        let configuration = settings.configuration
        // Exactly the text that was checked.
        try easy.set(CURLOPT_URL, url.requestText)
        try easy.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        // HTTP/2 if TLS negotiates it, else HTTP/1.1.
        try easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_2TLS))
        try easy.set(CURLOPT_BUFFERSIZE, 64 << 10)
        try easy.setCommonOptions(
            userAgent: configuration.userAgent, certificateAuthorities: configuration.certificateAuthorities)
        try easy.setTimeouts(connect: configuration.connectTimeout, total: timeLeft)
        if onFreshConnection { try easy.set(CURLOPT_FRESH_CONNECT, 1) }
    }

    private static func conditions(_ validators: SourceValidators) -> [String] {
        [
            validators.etag.map { "If-None-Match: \($0)" },
            validators.lastModified.map { "If-Modified-Since: \($0)" },
        ].compactMap { $0 }
    }

    // MARK: Callbacks of libcurl

    /// Whether `address` may be connected to.
    func allowsConnection(to address: UnsafePointer<sockaddr>, length: Int) -> Bool {
        guard let ip = IPAddress(address, length: length) else { return refuse(.address(purpose: "not an IP address")) }
        return allows(ip, port: IPAddress.port(address))
    }

    func didOpenSocket(_ number: Int32) {
        if number >= 0 {
            openedSockets += 1
            sockets.insert(number)
        } else if errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS {
            exhaustion = SystemError.last("socket").description
        }
    }

    /// Whether the request may be sent on the connection that libcurl has selected.
    func allowsRequest(to address: String, port: Int, localPort: Int) -> Bool {
        guard let ip = IPAddress(address) else { return refuse(.address(purpose: "not an IP address")) }
        guard allows(ip, port: port) else { return false }
        // The surplus of an origin that sent more than it declared would be read as the response to this request. libcurl before
        // 8.0 does not check for it. Over TLS there are always unread bytes of the protocol itself, so the check is impossible.
        if isOnUsedConnection, url.scheme == .http, sockets.hasUnreadInput(localPort: localPort, remote: ip, remotePort: port) {
            needsFreshConnection = true
            return false
        }
        didSendRequest = true
        return true
    }

    /// Receives a line of the head. Returning false ends the transfer.
    func receiveHeader(_ line: UnsafeRawBufferPointer) -> Bool {
        stall.receive(line.count)
        let wasComplete = head.isComplete
        if let fault = head.receive(line, maxSize: settings.configuration.maxHeadBytes) {
            failure = .failed(.protocolViolation(cause: fault))
            return false
        }
        guard head.isComplete, !wasComplete, bringsContent else { return true }
        decoder = ContentDecoder(head.contentCodings)
        guard let length = head.contentLength else { return true }
        let limit = settings.configuration.maxBytes
        if length > limit { failure = .tooLarge(limit: limit, declared: length) }
        return failure == nil
    }

    /// Receives a part of the body. Returning false ends the transfer.
    func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += bytes.count
        stall.receive(bytes.count)
        guard bringsContent else {
            // A short body is read and discarded so that the connection can be reused.
            return (head.contentLength ?? .max) <= Self.worthDraining && bodyBytes <= Self.worthDraining
        }
        do throws(FetchError) {
            if decoder == nil {
                try take(bytes)
            } else {
                // What is received is limited as well as what becomes of it.
                let limit = settings.configuration.maxBytes
                guard bodyBytes <= limit else { throw .tooLarge(limit: limit, declared: nil) }
                try decoder?.decode(bytes) { piece throws(FetchError) in try take(piece) }
            }
            return true
        } catch {
            failure = error
            return false
        }
    }

    private static let worthDraining = 16 << 10

    /// Takes a part of the source.
    private func take(_ bytes: UnsafeRawBufferPointer) throws(FetchError) {
        if let arrived = try sink?.append(bytes) { show(arrived) }
    }

    /// Shows the bytes received so far, once they are recognized as a source.
    private func show(_ arrived: BodySink.Arrived) {
        guard arrived.isFirst else { return arriving.advance(to: arrived.count) }
        let length = decoder == nil ? head.contentLength : nil
        let start = ArrivingSource.Start(file: arrived.file, length: length, cacheDirectives: cacheDirectives)
        arriving.begin(start, count: arrived.count)
    }

    private func allows(_ address: IPAddress, port: Int) -> Bool {
        if ownEndpoints.contains(address, port: port) { return refuse(.itself) }
        guard let refusal = settings.policy.addresses.refusal(of: address, port: port, for: url) else { return true }
        return refuse(refusal)
    }

    private func refuse(_ refusal: AddressRefusal) -> Bool {
        refusedSockets += 1
        self.refusal = refusal
        return false
    }

    private var isOnUsedConnection: Bool { openedSockets == 0 && !onFreshConnection }

    // MARK: The result

    /// Whether the body is the source: status 200, 201, 203 from a transforming proxy, or 206 with all that there is, which some
    /// origins send unasked.
    private var bringsContent: Bool {
        guard !isDelivery else { return false }
        return switch head.status {
        case 200, 201, 203: true
        case 206: head.wholeRange != nil
        default: false
        }
    }

    /// The directives of the response and of the redirects that led to it.
    var cacheDirectives: CacheDirectives {
        redirects.applied(to: head.cacheDirectives)
    }

    enum Result {
        case content(FetchedBody)
        case notModified
        /// The receiver has accepted the document.
        case delivered
        case redirect(location: [UInt8])
        /// The reused connection was not usable: the request has to be repeated on a new one.
        case staleConnection
        case failure(FetchError)
    }

    /// Whether the response has begun and is too slow.
    func isStalled(at now: ContinuousClock.Instant) -> Bool {
        stall.isStalled(at: now, hasBegun: head.status >= 200)
    }

    /// The result of a transfer that was ended because it stalled.
    func stalledResult() -> Result {
        head.isComplete && !bringsContent
            ? resultByStatus() : .failure(.timeout(.stall, limit: settings.configuration.stallTimeout))
    }

    /// The result of a transfer that has ended with `code`.
    func result(_ code: CURLcode) -> Result {
        if needsFreshConnection { return .staleConnection }
        if let failure { return .failure(failure) }
        // Without content the status decides, however the body ended.
        if head.isComplete, !bringsContent { return resultByStatus() }
        guard code == CURLE_OK else {
            let error = error(for: code)
            if case .failed(.protocolViolation) = error, head.status == 0, isOnUsedConnection, url.scheme == .https {
                return .staleConnection
            }
            return .failure(error)
        }
        guard head.isComplete, let sink = sink.take() else { return .failure(.failed(.protocolViolation(cause: "no head"))) }
        if decoder?.isComplete == false { return .failure(.failed(.cutShort(cause: "its compressed data end early"))) }
        if let range = head.wholeRange, head.status == 206, range != bodyBytes {
            return .failure(.failed(.cutShort(cause: "\(bodyBytes) bytes of \(range)")))
        }
        do throws(FetchError) {
            return .content(try sink.finish())
        } catch {
            return .failure(error)
        }
    }

    private func resultByStatus() -> Result {
        switch head.status {
        case 200...299 where isDelivery:
            return .delivered
        case 301, 302, 303, 307, 308:
            if isDelivery { return .failure(.failed(.status(head.status, retryAfter: nil))) }
            // A signature holds for one host. S3 redirects to another region, which is an error of the configuration.
            if bucket != nil { return .failure(.failed(.status(head.status, retryAfter: nil))) }
            guard let location = head.location else { return .failure(.failed(.redirectToNowhere)) }
            return .redirect(location: location)
        case 304 where isConditional:
            return .notModified
        case 404:
            return .failure(.notFound)
        case 410:
            return .failure(.gone)
        default:
            return .failure(.failed(.status(head.status, retryAfter: head.retryAfter(now: time(nil)))))
        }
    }

    private func error(for code: CURLcode) -> FetchError {
        let cause = easy.errorMessage(code)
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST:
            // The resolver does not say that it got no descriptor.
            if DescriptorLimit.isShort() { return .exhausted(cause: SystemError("resolve", code: EMFILE).description) }
            return .unreachable(cause: cause)
        case CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK:
            if let exhaustion { return .exhausted(cause: exhaustion) }
            // A name may have several addresses: the source is refused only if no address was left to try.
            if let refusal, openedSockets == 0 || code == CURLE_ABORTED_BY_CALLBACK { return .notAllowed(.address(refusal)) }
            return .unreachable(cause: cause)
        case CURLE_OPERATION_TIMEDOUT:
            return didSendRequest
                ? .timeout(.total, limit: settings.configuration.timeout)
                : .timeout(.connect, limit: settings.configuration.connectTimeout)
        case CURLE_PARTIAL_FILE, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_SEND_ERROR, CURLE_HTTP2_STREAM:
            return .failed(.cutShort(cause: cause))
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ISSUER_ERROR:
            return .failed(.tls(cause: cause))
        case CURLE_SSL_CACERT_BADFILE, CURLE_FAILED_INIT:
            return .exhausted(cause: cause)
        case CURLE_OUT_OF_MEMORY where !head.isComplete && didSendRequest:
            // libcurl reports this for a line that exceeds its buffer limit.
            return .failed(.protocolViolation(cause: "line of the head too long"))
        default:
            return .failed(.protocolViolation(cause: cause))
        }
    }
}

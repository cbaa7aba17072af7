internal import Glibc
internal import HTTPClient
internal import SystemIO

/// A caller's order to a ``Fetcher``.
struct FetchOrder: Sendable {
    let source: SourceURL
    /// The URL of the first request.
    let address: WebAddress
    let validators: SourceValidators
    /// Additional request header fields.
    let fields: [String]
    /// Receives the bytes while they arrive.
    let arriving: ArrivingSource
}

/// A fetch, including all its redirects. Used only on the client's thread.
final class FetchCall: HTTPCall {
    /// The result of a fetch's requests.
    enum Received: Sendable {
        case outcome(FetchOutcome)
        /// A body that is still being decoded, and a function that returns its source.
        case coded(CodedBody, @Sendable (FetchedBody) -> FetchedSource)
    }

    typealias Continuation = CheckedContinuation<Result<Received, FetchError>, Never>

    private let order: FetchOrder
    private let context: FetchContext
    private let continuation: Continuation
    /// The URL of the current request: first the requested URL, then the target of each redirect.
    private var url: WebAddress
    private var redirects = 0
    private var redirectDirectives = RedirectDirectives()
    private var isUnconditional = false
    /// When the first request was sent.
    private var started: ContinuousClock.Instant?
    /// The settings of the current request.
    private var settings: FetchSettings
    private var judge: AddressJudge
    private var head: ResponseHead?
    private var sink: BodySink?
    /// The decoder of the body; nil if the body is the source itself.
    private var coded: CodedBody?
    private var bodyBytes = 0
    /// The beginning of a body with an error of S3.
    private var errorBody: [UInt8] = []
    private var failure: FetchError?
    private var result: Result<Received, FetchError> = .failure(.closed)

    init(_ order: FetchOrder, _ context: FetchContext, _ continuation: Continuation) {
        self.order = order
        self.context = context
        self.continuation = continuation
        url = order.address
        settings = context.settings
        judge = AddressJudge(url, settings, context)
    }

    var key: String { "\(url.host):\(url.port)" }
    var timeout: Duration { context.settings.configuration.timeout }
    var checksAddresses: Bool { true }
    var finishesLookup: Bool { true }
    var needsBody: Bool { bringsContent }
    func mayBegin() -> Bool { started != nil || order.arriving.mayBegin() }

    /// The source of the current request: the ordered source, or the target of a redirect.
    private var target: SourceURL { redirects == 0 ? order.source : .web(url) }

    /// The validators for the current request. They are valid only for the URL of the first request.
    private var validators: SourceValidators {
        redirects == 0 && !isUnconditional ? order.validators : SourceValidators()
    }

    func nextRequest() -> ClientRequest? {
        if started == nil { started = .now }
        settings = context.settings
        judge = AddressJudge(url, settings, context)
        (head, coded, bodyBytes, errorBody, failure) = (nil, nil, 0, [], nil)
        sink = BodySink(limit: settings.configuration.maxBytes, acceptsImages: order.arriving.acceptsImages)
        // The settings may have changed since the call was queued.
        if let refusal = settings.rules.refusal(of: target, redirectedFrom: order.source) {
            result = .failure(.notAllowed(refusal))
            return nil
        }
        let conditions = [
            validators.etag.map { "If-None-Match: \($0)" }, validators.lastModified.map { "If-Modified-Since: \($0)" },
        ]
        // Exactly the text that was checked.
        var request = settings.request(
            "GET", url.requestText,
            fields: ["Accept: \(settings.configuration.formats.accept(forPath: url.path))"] + settings.headers
                + conditions.compactMap(\.self) + order.fields + settings.rules.fields(of: target, source: order.source))
        if case .object(let object) = target {
            request.signer = settings.configuration.buckets[object.bucket]?.signer?.signature
        }
        return request
    }

    func allows(_ address: IPAddress?, port: Int) -> Bool { judge.allows(address, port: port) }

    func receive(_ received: HTTPHead) -> Bool {
        let head = ResponseHead(received)
        self.head = head
        if let fault = head.fault {
            failure = .failed(.protocolViolation(cause: fault))
        } else if bringsContent {
            coded = codedBody(head)
            let limit = settings.configuration.maxBytes
            if let length = head.contentLength, length > limit { failure = .tooLarge(limit: limit, declared: length) }
        } else if case .object = target {
            // The body names the error, even if its length is not declared.
            return true
        } else {
            return received.hasShortBody
        }
        return failure == nil
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += bytes.count
        guard bringsContent else {
            if case .object = target {
                errorBody += bytes.prefix(Self.maxErrorBody - errorBody.count)
                // The declaration of XML may come alone.
                if errorCode == nil, errorBody.count < Self.maxErrorBody { return true }
            }
            // A short body is read and discarded so that the connection can be reused.
            return head?.contentLength != nil && bodyBytes <= HTTPHead.shortBody
        }
        do throws(FetchError) {
            if let coded {
                // Both the received and the decoded bytes are limited.
                let limit = settings.configuration.maxBytes
                guard bodyBytes <= limit else { throw .tooLarge(limit: limit, declared: nil) }
                try coded.append(bytes)
            } else if let arrived = try sink?.append(bytes) {
                Self.show(arrived, to: order.arriving, length: head?.contentLength, cacheDirectives)
            }
            return true
        } catch {
            let isBrotli = error == .notAnAnimation(looksLike: .unknown) && head?.contentCodings.contains("br") == true
            failure = isBrotli ? .notAnAnimation(looksLike: .brotli) : error
            return false
        }
    }

    /// Returns the receiver of an encoded body; nil if the body is used without decoding.
    private func codedBody(_ head: ResponseHead) -> CodedBody? {
        let configuration = settings.configuration
        let limits = CodedBody.Limits(
            bytes: configuration.maxBytes, acceptsImages: order.arriving.acceptsImages,
            deadline: (started ?? .now) + configuration.timeout, timeout: configuration.timeout)
        return CodedBody(head.contentCodings, limits, on: context.decodingThreads) {
            [arriving = order.arriving, cacheDirectives] in
            Self.show($0, to: arriving, length: nil, cacheDirectives)
        }
    }

    /// Makes the bytes received so far available to readers.
    private static func show(
        _ arrived: BodySink.Arrived, to arriving: ArrivingSource, length: Int?, _ cacheDirectives: CacheDirectives
    ) {
        guard arrived.isFirst else { return arriving.advance(to: arrived.count) }
        let start = ArrivingSource.Start(file: arrived.file, length: length, cacheDirectives: cacheDirectives)
        arriving.begin(start, count: arrived.count)
    }

    /// Whether the body is the source: status 200, 201, 203 from a transforming proxy, or 206 with the whole representation,
    /// which some origins send unasked.
    private var bringsContent: Bool {
        switch head?.status {
        case 200, 201, 203: true
        case 206: head?.wholeRange != nil
        default: false
        }
    }

    /// The directives of the response and of the redirects that led to it.
    private var cacheDirectives: CacheDirectives {
        redirectDirectives.applied(to: head?.cacheDirectives ?? CacheDirectives())
    }

    // MARK: The end of a request

    func continues(after end: Result<Void, HTTPError>) -> Bool {
        do throws(FetchError) {
            if let failure { throw failure }
            // Without content the status decides, however the body ended.
            if let head, !bringsContent { return try follow(head) }
            if case .failure(let error) = end { throw FetchError(error, settings.configuration, refusal: judge.refusal) }
            result = .success(try received())
        } catch {
            coded?.cancel()
            result = .failure(error)
        }
        return false
    }

    private func received() throws(FetchError) -> Received {
        guard let head, let sink = sink.take() else { throw .failed(.protocolViolation(cause: "no head")) }
        if let range = head.wholeRange, head.status == 206, range != bodyBytes {
            throw .failed(.cutShort(cause: "\(bodyBytes) bytes of \(range)"))
        }
        let validators = redirects == 0 ? head.validators : SourceValidators()
        let source = { @Sendable [cacheDirectives, duration] (body: FetchedBody) in
            FetchedSource(
                bytes: body.bytes, count: body.count, sha256: body.sha256, validators: validators,
                cacheDirectives: cacheDirectives, duration: duration)
        }
        if let coded { return .coded(coded, source) }
        return .outcome(.fetched(source(try sink.finish())))
    }

    /// Handles a response without content. Returns whether another request follows.
    private func follow(_ head: ResponseHead) throws(FetchError) -> Bool {
        switch head.status {
        case 301, 302, 303, 307, 308:
            // A signature is valid for one host only. S3 redirects to another region, which is a configuration error.
            if case .object = target { throw .failed(.status(head.status, retryAfter: nil, code: errorCode)) }
            guard let location = head.location else { throw .failed(.redirectToNowhere) }
            try redirect(to: location, by: head)
            return true
        case 304 where !validators.isEmpty:
            guard head.validators.confirm(validators) else {
                // The response concerns another representation (RFC 9111 section 4.3.4).
                isUnconditional = true
                return true
            }
            result = .success(.outcome(.notModified(unmodified(head))))
            return false
        // A bucket that is missing says nothing about its objects.
        case 404 where errorCode != "NoSuchBucket": throw .notFound
        case 410: throw .gone
        default: throw .failed(.status(head.status, retryAfter: head.retryAfter, code: errorCode))
        }
    }

    private static let maxErrorBody = 1024

    /// The code in the body of S3's error, such as `AccessDenied`; nil for other responses.
    private var errorCode: String? {
        guard let start = errorBody.firstRange(of: Array("<Code>".utf8)) else { return nil }
        let code = errorBody[start.upperBound...].prefix(while: \.isLetterOrDigit)
        guard !code.isEmpty, errorBody[code.endIndex...].first == UInt8(ascii: "<") else { return nil }
        return String(decoding: code, as: UTF8.self)
    }

    private func redirect(to location: [UInt8], by head: ResponseHead) throws(FetchError) {
        let current = context.settings
        let limit = current.configuration.maxRedirects
        guard redirects < limit else { throw .tooManyRedirects(limit: limit) }
        let next = try translating(try url.following(location: location)) { (error: SourceURLError) in
            FetchError.failed(.redirect(error))
        }
        if let refusal = current.rules.refusal(of: .web(next), redirectedFrom: order.source) { throw .notAllowed(refusal) }
        url = next
        redirectDirectives.add(head)
        redirects += 1
        context.counters.update { $0.redirects += 1 }
    }

    private func unmodified(_ head: ResponseHead) -> UnmodifiedSource {
        let (repeated, known) = (head.validators, order.validators)
        return UnmodifiedSource(
            validators: SourceValidators(
                etag: repeated.etag ?? known.etag, lastModified: repeated.lastModified ?? known.lastModified),
            cacheDirectives: cacheDirectives, duration: duration)
    }

    private var duration: Duration { started.map { ContinuousClock.now - $0 } ?? .zero }

    func end(_ error: HTTPError?) {
        let failure = error.map { FetchError($0, context.settings.configuration, refusal: nil) }
        if failure != nil { coded?.cancel() }
        continuation.resume(returning: failure.map { .failure($0) } ?? result)
    }
}

/// A document sent with POST, under the same rules for URLs and addresses as a fetch. Used only on the client's thread.
final class DeliveryCall: HTTPCall {
    typealias Continuation = CheckedContinuation<Result<Void, FetchError>, Never>

    private let document: [UInt8]
    private let url: WebAddress
    private let fields: [String]
    private let context: FetchContext
    private let continuation: Continuation
    private var judge: AddressJudge
    private var head: HTTPHead?
    private var bodyBytes = 0
    private var result: Result<Void, FetchError> = .failure(.closed)

    init(
        _ document: [UInt8], to url: WebAddress, fields: [String], _ context: FetchContext, _ continuation: Continuation
    ) {
        self.document = document
        self.url = url
        self.fields = fields
        self.context = context
        self.continuation = continuation
        judge = AddressJudge(url, context.settings, context)
    }

    var key: String { "\(url.host):\(url.port)" }
    var timeout: Duration { context.settings.configuration.timeout }
    var checksAddresses: Bool { true }
    var needsBody: Bool { false }

    func nextRequest() -> ClientRequest? {
        let settings = context.settings
        judge = AddressJudge(url, settings, context)
        // The settings may have changed since the call was queued.
        if let refusal = settings.rules.refusal(of: .web(url)) {
            result = .failure(.notAllowed(refusal))
            return nil
        }
        return settings.request(
            "POST", url.requestText, fields: settings.deliveryHeaders + fields, body: .bytes(document))
    }

    func allows(_ address: IPAddress?, port: Int) -> Bool { judge.allows(address, port: port) }

    func receive(_ head: HTTPHead) -> Bool {
        self.head = head
        return head.hasShortBody
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        bodyBytes += bytes.count
        return bodyBytes <= HTTPHead.shortBody
    }

    func continues(after end: Result<Void, HTTPError>) -> Bool {
        if let head {
            let error = FetchError.failed(.status(head.status, retryAfter: head.retryAfter(now: time(nil))))
            result = (200...299).contains(head.status) ? .success(()) : .failure(error)
        } else if case .failure(let error) = end {
            result = .failure(FetchError(error, context.settings.configuration, refusal: judge.refusal))
        }
        return false
    }

    func end(_ error: HTTPError?) {
        let failure = error.map { FetchError($0, context.settings.configuration, refusal: nil) }
        continuation.resume(returning: failure.map { .failure($0) } ?? result)
    }
}

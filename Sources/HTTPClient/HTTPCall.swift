internal import Digests
internal import Glibc
package import SystemIO

/// A call of an ``HTTPClient``: a request, or a sequence of requests such as redirects. Used only on the client's thread.
package protocol HTTPCall: AnyObject {
    /// The key under which calls share ``HTTPClient/Limits/runningPerKey``. It may change before a further request.
    var key: String { get }
    /// The timeout of the whole call, from when its first request is sent. A call that waits that long for its first request
    /// fails with ``HTTPError/busy``.
    var timeout: Duration { get }
    /// Whether ``allows(_:port:)`` decides which connections may be used.
    var checksAddresses: Bool { get }
    /// Whether a cancelled call keeps its slot until the lookup of its name has ended. The lookup occupies a thread that cannot
    /// be ended, so calls that are cancelled at once would otherwise start any number of threads.
    var finishesLookup: Bool { get }
    /// Whether the call needs the body, by the head that it has received. Any other body is received for a moment only, so that
    /// the connection can be reused; if it takes longer, the request ends with ``HTTPError/stalled``.
    var needsBody: Bool { get }

    /// Whether the call may send its next request once the limits allow it. Polled until it returns true; the call waits until
    /// then.
    func mayBegin() -> Bool
    /// Returns the request to send now, or nil to end the call.
    func nextRequest() -> ClientRequest?
    /// Whether the request may be sent to an address; nil for an address that is not an IP address.
    func allows(_ address: IPAddress?, port: Int) -> Bool
    /// Receives the complete head of the final response. Return false to end the request.
    func receive(_ head: HTTPHead) -> Bool
    /// Receives a piece of the body. Return false to end the request.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool
    /// Returns whether another request follows. `result` does not say why if the call itself ended the request.
    func continues(after result: Result<Void, HTTPError>) -> Bool
    /// Reports `error`, or else the call's own result, to the caller. Called exactly once, at the end.
    func end(_ error: HTTPError?)
}

extension HTTPCall {
    package var key: String { "" }
    package var checksAddresses: Bool { false }
    package var finishesLookup: Bool { false }
    package var needsBody: Bool { true }
    package func mayBegin() -> Bool { true }
    package func allows(_ address: IPAddress?, port: Int) -> Bool { true }
}

/// A single request whose response is received completely, or up to its head if only the status matters.
final class BufferedCall: HTTPCall {
    private let request: ClientRequest
    private let finish: (Result<ClientResponse, HTTPError>) -> Void
    private var head = HTTPHead()
    private var body: [UInt8] = []
    private var length = 0
    private var digest = SHA256()
    private var result: Result<ClientResponse, HTTPError> = .failure(.closed)
    private var failure: HTTPError?

    private static let excerptLength = 64 << 10

    init(_ request: ClientRequest, finish: @escaping (Result<ClientResponse, HTTPError>) -> Void) {
        self.request = request
        self.finish = finish
    }

    var timeout: Duration { request.timeout }

    var needsBody: Bool {
        switch destination {
        case .memory, .file: true
        case .excerpt, .status: false
        }
    }

    func nextRequest() -> ClientRequest? {
        if case .file(let file, _) = request.destination, ftruncate(file.number, 0) != 0 {
            result = .failure(.file(.last("ftruncate")))
            return nil
        }
        return request
    }

    private var destination: ClientRequest.Destination {
        if case .status = request.destination { return .status }
        return (200...299).contains(head.status) ? request.destination : .excerpt
    }

    func receive(_ head: HTTPHead) -> Bool {
        self.head = head
        switch destination {
        case .memory(let limit), .file(_, let limit): return (head.contentLength ?? 0) <= limit || fail(.tooLarge(limit: limit))
        case .excerpt: return true
        case .status: return head.hasShortBody
        }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        switch destination {
        case .excerpt:
            body += bytes.prefix(max(0, Self.excerptLength - body.count))
        case .memory(let limit):
            guard bytes.count <= limit - length else { return fail(.tooLarge(limit: limit)) }
            body += bytes
        case .file(let file, let limit):
            guard bytes.count <= limit - length else { return fail(.tooLarge(limit: limit)) }
            do throws(SystemError) {
                try DescriptorIO.write(bytes, to: file.number, at: length)
            } catch {
                return fail(.file(error))
            }
            digest.update(bytes)
        case .status:
            guard bytes.count <= HTTPHead.shortBody - length else { return false }
        }
        length += bytes.count
        return true
    }

    private func fail(_ error: HTTPError) -> Bool {
        failure = error
        return false
    }

    func continues(after end: Result<Void, HTTPError>) -> Bool {
        switch (destination, end) {
        case (.status, _) where head.isComplete, (.excerpt, .failure(.stalled)) where head.isComplete:
            result = .success(response)
        default: result = failure.map { .failure($0) } ?? end.map { response }
        }
        return false
    }

    private var response: ClientResponse {
        let fields = head.fields.map { ($0.name, String(decoding: $0.value, as: UTF8.self)) }
        var digest: [UInt8]?
        if case .file = destination { digest = self.digest.finalize() }
        return ClientResponse(
            status: head.status, fields: Dictionary(fields) { $1 }, body: body, length: length, digest: digest,
            retryAfter: head.retryAfter(now: time(nil)))
    }

    func end(_ error: HTTPError?) {
        finish(error.map { .failure($0) } ?? result)
    }
}

internal import CCurl
internal import Digests
internal import Curl
internal import Glibc
internal import SystemIO

/// A request under way. Used on the transfer loop's thread only.
final class Transfer {
    let id: Int
    private let request: TransferRequest
    private let continuation: CheckedContinuation<Result<TransferResponse, StoreError>, Never>
    private(set) var easy: EasyHandle<StoreError>

    private var status = 0
    private var fields: [String: String] = [:]
    private var headLength = 0
    private var isHeadComplete = false
    private var body: [UInt8] = []
    private var length = 0
    private var digest = SHA256()
    private var sent = 0
    private var failure: StoreError?

    /// The largest head of a response, in bytes.
    private static let maxHeadLength = 64 << 10
    /// The largest body of a response that reports an error, in bytes.
    private static let maxErrorLength = 64 << 10

    /// Prepares a request; it begins when the handle is added to the multi handle.
    init(
        _ id: Int, _ request: TransferRequest, _ continuation: CheckedContinuation<Result<TransferResponse, StoreError>, Never>
    ) throws(StoreError) {
        self.id = id
        self.request = request
        self.continuation = continuation
        easy = try EasyHandle<StoreError>()
        try receiveCallbacks(of: easy)
        try setOptions()
    }

    private func setOptions() throws(StoreError) {
        // The path is signed as it is sent.
        try easy.set(CURLOPT_URL, request.url)
        try easy.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        try easy.set(CURLOPT_TCP_KEEPALIVE, 1)
        try easy.set(CURLOPT_BUFFERSIZE, 256 << 10)
        try easy.set(CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
        // libcurl announces uploads (Expect: 100-continue) and waits a second if a server ignores that.
        try easy.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 100)
        try easy.setCommonOptions(userAgent: "gifreel", certificateAuthorities: request.certificateAuthorities)
        try easy.setTimeouts(connect: request.timeout, total: request.timeout)
        switch request.method {
        case .get: try easy.set(CURLOPT_HTTPGET, 1)
        case .head: try easy.set(CURLOPT_NOBODY, 1)
        case .delete: try easy.set(CURLOPT_CUSTOMREQUEST, request.method.rawValue)
        case .put:
            try easy.set(CURLOPT_UPLOAD, 1)
            try easy.setSize(CURLOPT_INFILESIZE_LARGE, request.body?.length ?? 0)
        }
        let signed = request.signer?.sign(
            request.method.rawValue, request.url, fields: request.fields, digest: request.digest)
        try easy.setFields(signed ?? request.fields)
    }

    // MARK: Callbacks of libcurl

    /// Receives a line of the head. Returning false ends the transfer.
    func receiveHeadLine(_ line: UnsafeRawBufferPointer) -> Bool {
        headLength += line.count
        guard headLength <= Self.maxHeadLength else { return fail(.invalidResponse(cause: "its head is too long")) }
        let text = String(decoding: line, as: UTF8.self)
        // libcurl has checked the form of the status line, which begins the head of an interim response as well.
        if text.hasPrefix("HTTP/") {
            fields.removeAll()
            isHeadComplete = false
            status = text.split(separator: " ").dropFirst().first.flatMap { Int($0.prefix(3)) } ?? 0
        } else if let colon = text.firstIndex(of: ":") {
            let value = text[text.index(after: colon)...].trimmingWhitespace()
            fields[text[..<colon].lowercased()] = value
        } else if text == "\r\n" || text == "\n" {
            isHeadComplete = true
            let declared = fields["content-length"].flatMap { Int($0) } ?? 0
            guard status != 200 || request.method != .get || declared <= request.maxLength else {
                return fail(.tooLarge(limit: request.maxLength))
            }
        }
        return true
    }

    /// Receives bytes of the body. Returning false ends the transfer.
    func receiveBody(_ piece: UnsafeRawBufferPointer) -> Bool {
        guard status == 200, request.method == .get else {
            // The rest of a long text about an error does not matter.
            body += piece.prefix(max(0, Self.maxErrorLength - body.count))
            return true
        }
        guard piece.count <= request.maxLength - length else { return fail(.tooLarge(limit: request.maxLength)) }
        switch request.destination {
        case .memory: body += piece
        case .file(let file):
            do throws(SystemError) {
                try DescriptorIO.write(piece, to: file.number, at: length)
            } catch {
                return fail(.file(error))
            }
            digest.update(piece)
        }
        length += piece.count
        return true
    }

    /// Fills `space` with the next bytes of the body to send. Returns nil if they cannot be read.
    func fill(_ space: UnsafeMutableRawBufferPointer) -> Int? {
        guard let body = request.body else { return 0 }
        let wanted = UnsafeMutableRawBufferPointer(rebasing: space[..<min(space.count, body.length - sent)])
        switch body {
        case .bytes(let bytes): wanted.copyBytes(from: bytes[sent..<sent + wanted.count])
        case .file(let file, _):
            do throws(SystemError) {
                guard try file.read(into: wanted, at: sent) == wanted.count else {
                    failure = .file(SystemError("read", code: ENODATA))
                    return nil
                }
            } catch {
                failure = .file(error)
                return nil
            }
        }
        sent += wanted.count
        return wanted.count
    }

    /// Continues the body to send at `offset`.
    func seek(to offset: Int) {
        sent = min(offset, request.body?.length ?? 0)
    }

    private func fail(_ error: StoreError) -> Bool {
        failure = error
        return false
    }

    // MARK: The end

    /// Reports the transfer's end to its caller.
    func finish(_ code: CURLcode) {
        continuation.resume(returning: result(code))
    }

    /// Reports an error to its caller in place of the transfer's result.
    func finish(_ error: StoreError) {
        continuation.resume(returning: .failure(error))
    }

    private func result(_ code: CURLcode) -> Result<TransferResponse, StoreError> {
        if let failure { return .failure(failure) }
        // The server works where it answers. Otherwise a few large objects would count as an outage.
        if code == CURLE_OPERATION_TIMEDOUT, isHeadComplete, status == 200, request.method == .get { return .failure(.tooSlow) }
        if code != CURLE_OK { return .failure(StoreError(code, easy.errorMessage(code))) }
        // libcurl takes a head that ends with the connection for a response without a body.
        guard isHeadComplete else { return .failure(.interrupted(cause: "its head is incomplete")) }
        var digest: [UInt8]?
        if case .file = request.destination { digest = self.digest.finalize() }
        return .success(TransferResponse(status: status, fields: fields, body: body, length: length, digest: digest))
    }
}

extension StoreError {
    /// The meaning of libcurl's result.
    fileprivate init(_ code: CURLcode, _ message: String) {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: self = .timedOut
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
            self = .unreachable(cause: message)
        case CURLE_GOT_NOTHING, CURLE_RECV_ERROR, CURLE_SEND_ERROR, CURLE_PARTIAL_FILE, CURLE_SEND_FAIL_REWIND:
            self = .interrupted(cause: message)
        case CURLE_OUT_OF_MEMORY: self = .exhausted(cause: message)
        default: self = .invalidResponse(cause: message)
        }
    }
}

extension Substring {
    /// The text without spaces, tabs and line ends around it.
    fileprivate func trimmingWhitespace() -> String {
        let isWhitespace = { (character: Character) in character.isWhitespace }
        return String(drop(while: isWhitespace).reversed().drop(while: isWhitespace).reversed())
    }
}

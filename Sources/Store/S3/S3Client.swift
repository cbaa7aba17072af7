internal import Digests
internal import Foundation
package import HTTPClient
internal import Synchronization
internal import SystemIO

/// The operations of S3 on one bucket: each is one request, without retries.
///
/// Any thread. Every function suspends; none blocks.
final class S3Client: Sendable {
    private let http: HTTPClient
    private let bucket: S3Bucket
    private let deletesTogether = Atomic(true)

    init(_ http: HTTPClient, bucket: S3Bucket) {
        (self.http, self.bucket) = (http, bucket)
    }

    /// The bytes of an object to store, and what is stored with them.
    struct Upload: Sendable {
        var body: ClientRequest.Body
        /// SHA-256 of the body, which the server checks.
        var digest: [UInt8]
        var mediaType: String
        /// User metadata: names in lower case, values in printable ASCII.
        var metadata: [String: String] = [:]
    }

    fileprivate static let metadataPrefix = "x-amz-meta-"

    /// Gets an object; nil if the bucket has none with this key.
    ///
    /// - Parameter destination: Memory or a file, with the largest object to accept.
    func get(
        _ key: String, to destination: ClientRequest.Destination, timeout: Duration
    ) async throws(StoreError) -> ClientResponse? {
        var request = try await request("GET", key, timeout: timeout)
        request.destination = destination
        let response = try await send(request)
        if response.status == 200 { return response }
        if Self.isMissing(response) { return nil }
        throw StoreError(response)
    }

    /// Gets the metadata of an object; nil if the bucket has none with this key.
    func head(_ key: String, timeout: Duration) async throws(StoreError) -> [String: String]? {
        let response = try await send(try await request("HEAD", key, timeout: timeout))
        // The response has no body with a code, so a missing bucket cannot be told from a missing object.
        if response.status == 404 { return nil }
        guard response.status == 200 else { throw StoreError(response) }
        return response.metadata
    }

    /// Stores an object, replacing any object with the same key.
    func put(_ key: String, _ upload: Upload, timeout: Duration) async throws(StoreError) {
        let fields = upload.metadata.map { "\(Self.metadataPrefix)\($0.key): \($0.value)" }
        var request = try await request(
            "PUT", key, digest: Hex.encode(upload.digest), fields: fields + ["content-type: \(upload.mediaType)"],
            timeout: timeout)
        request.body = upload.body
        request.expectsContinue = true
        let response = try await send(request)
        guard response.status == 200 else { throw StoreError(response) }
    }

    /// Deletes an object. Succeeds if the bucket has none with this key.
    func delete(_ key: String, timeout: Duration) async throws(StoreError) {
        let response = try await send(try await request("DELETE", key, timeout: timeout))
        // Without a code, a 404 is that of a proxy, and the object may exist.
        let isMissing = Self.isMissing(response) && !S3ErrorBody(response.body).code.isEmpty
        guard response.status == 204 || response.status == 200 || isMissing else { throw StoreError(response) }
    }

    /// The largest number of objects that one request deletes.
    static let maxDeletions = 1000

    /// Deletes objects by one request (DeleteObjects). Succeeds for those that the bucket does not have.
    ///
    /// - Returns: The objects that were not deleted, and why; nil if the server does not know this request.
    func delete(_ keys: [String], timeout: Duration) async throws(StoreError) -> [String: StoreError]? {
        guard deletesTogether.load(ordering: .relaxed) else { return nil }
        let objects = keys.map { "<Object><Key>\(Self.escaped($0))</Key></Object>" }.joined()
        let body = Array(
            ("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                + "<Quiet>true</Quiet>\(objects)</Delete>").utf8)
        // Servers require this checksum.
        guard let checksum = MD5.hash(body) else { return nil }
        var request = try await request(
            "POST", "", query: [(name: "delete", value: "")], digest: Hex.encode(SHA256.hash(body)),
            fields: ["content-type: application/xml", "content-md5: \(Data(checksum).base64EncodedString())"],
            timeout: timeout)
        request.body = .bytes(body)
        // 1,000 keys of 1,024 bytes, each byte escaped, with their errors.
        request.destination = .memory(limit: 16 << 20)
        let response = try await send(request)
        guard response.status == 200 else {
            let error = StoreError(response)
            switch error {
            case .rejected, .serverFailed(status: 501, _):
                deletesTogether.store(false, ordering: .relaxed)
                return nil
            default: throw error
            }
        }
        guard let root = XMLElement(document: response.body), root.name == "DeleteResult" else {
            throw .invalidResponse(cause: "its result of deletions cannot be read")
        }
        return Dictionary(
            root.children.filter { $0.name == "Error" }.map {
                ($0.text("Key") ?? "", StoreError(deletionCode: $0.text("Code")))
            }, uniquingKeysWith: { $1 })
    }

    private static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
    }

    /// Lists the objects whose keys begin with `prefix`, in the order of their keys.
    ///
    /// - Parameters:
    ///   - token: The token of the previous page; nil for the first one.
    ///   - start: Only keys after this one are listed.
    /// - Returns: Up to 1,000 objects, and the token of the next page; nil on the last one.
    func list(
        prefix: String, token: String?, after start: String? = nil, pageSize: Int = 1000, timeout: Duration
    ) async throws(StoreError) -> S3ListPage {
        var query = [
            (name: "list-type", value: "2"), (name: "max-keys", value: "\(pageSize)"), (name: "prefix", value: prefix),
        ]
        if let token { query.append((name: "continuation-token", value: token)) }
        if let start { query.append((name: "start-after", value: start)) }
        var request = try await request("GET", "", query: query, timeout: timeout)
        // 1,000 keys of 1,024 bytes, each byte escaped, and the elements around them.
        request.destination = .memory(limit: 16 << 20)
        let response = try await send(request)
        guard response.status == 200 else { throw StoreError(response) }
        guard let root = XMLElement(document: response.body), let page = S3ListPage(root) else {
            throw .invalidResponse(cause: "its list of objects cannot be read")
        }
        return page
    }

    private func send(_ request: ClientRequest) async throws(StoreError) -> ClientResponse {
        try await translating(awaiting: try await http.send(request)) { (error: HTTPError) in StoreError(error) }
    }

    private func request(
        _ method: String, _ key: String, query: [(name: String, value: String)] = [], digest: String? = nil,
        fields: [String] = [], timeout: Duration
    ) async throws(StoreError) -> ClientRequest {
        let start = ContinuousClock.now
        let signature = try await bucket.keys.signature(for: bucket.endpoint.region, within: timeout)
        let timeLeft = max(.milliseconds(1), timeout - (ContinuousClock.now - start))
        var request = ClientRequest(
            method, bucket.endpoint.url(bucket: bucket.name, key: key, query: query), fields: fields, timeout: timeLeft,
            connectTimeout: timeLeft)
        request.digest = digest
        request.signer = signature
        request.certificateAuthorities = bucket.certificateAuthorities
        request.bufferSize = 256 << 10
        return request
    }

    /// Whether the response says that the object does not exist. A missing bucket is an error.
    private static func isMissing(_ response: ClientResponse) -> Bool {
        response.status == 404 && S3ErrorBody(response.body).code != "NoSuchBucket"
    }
}

extension ClientResponse {
    /// An object's user metadata: names in lower case, without `x-amz-meta-`.
    var metadata: [String: String] {
        var metadata: [String: String] = [:]
        for (name, value) in fields where name.hasPrefix(S3Client.metadataPrefix) {
            metadata[String(name.dropFirst(S3Client.metadataPrefix.count))] = value
        }
        return metadata
    }
}

/// A bucket, and how to reach it.
package struct S3Bucket: Sendable, Equatable {
    package let endpoint: S3Endpoint
    package let name: String
    package let keys: S3Keys
    /// A PEM file of certificate authorities to trust instead of the system's.
    package let certificateAuthorities: String?

    /// - Throws: ``StoreConfigurationError`` for a name that does not fit the endpoint.
    package init(
        endpoint: S3Endpoint, name: String, keys: S3Keys, certificateAuthorities: String? = nil
    ) throws(StoreConfigurationError) {
        try endpoint.validate(bucket: name)
        self.endpoint = endpoint
        self.name = name
        self.keys = keys
        self.certificateAuthorities = certificateAuthorities
    }

    /// The URL of the bucket, with a trailing slash, for another HTTP client. That client must encode a key as
    /// ``PercentEncoding/encode(_:keepsSlashes:)`` does, and send the path unchanged (`CURLOPT_PATH_AS_IS`).
    package var url: String {
        let url = endpoint.url(bucket: name, key: "")
        return url.hasSuffix("/") ? url : url + "/"
    }

    /// Signs requests to the bucket; nil if they are not signed.
    package var signer: RequestSigner? {
        switch keys {
        case .none: nil
        case .fixed(let credentials): .fixed(credentials.signature(for: endpoint.region))
        case .role(let role): .renewed(role, region: endpoint.region)
        }
    }
}

/// Where the keys for a bucket come from.
package enum S3Keys: Sendable, Equatable {
    /// Requests are not signed.
    case none
    case fixed(S3Credentials)
    case role(RoleCredentials)

    /// Returns a signature for a request that is sent now; nil for an unsigned request. See
    /// ``RoleCredentials/signature(for:within:)``.
    func signature(for region: String, within limit: Duration) async throws(StoreError) -> SignatureV4? {
        switch self {
        case .none: nil
        case .fixed(let credentials): credentials.signature(for: region)
        case .role(let role): try await role.signature(for: region, within: limit)
        }
    }
}

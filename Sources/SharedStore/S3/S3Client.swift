package import HTTPClient
internal import SystemIO

/// The operations of S3 on one bucket: each is one request, without retries.
///
/// Any thread. Every function suspends; none blocks.
struct S3Client: Sendable {
    private let http: HTTPClient
    private let endpoint: S3Endpoint
    private let bucket: String
    private let signer: SignatureV4?
    private let certificateAuthorities: String?

    init(_ http: HTTPClient, bucket: S3Bucket) {
        self.http = http
        endpoint = bucket.endpoint
        self.bucket = bucket.name
        signer = bucket.signer
        certificateAuthorities = bucket.certificateAuthorities
    }

    /// The description of an object from the head of a response.
    struct ObjectHead: Sendable, Equatable {
        var length: Int
        /// User metadata: names in lower case, without `x-amz-meta-`.
        var metadata: [String: String]
    }

    /// A received object.
    struct Object: Sendable, Equatable {
        var head: ObjectHead
        /// The bytes, if they went to memory.
        var bytes: [UInt8]
        /// SHA-256 of the bytes, if they went to a file.
        var digest: [UInt8]?
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

    private static let metadataPrefix = "x-amz-meta-"

    /// Gets an object; nil if the bucket has none with this key.
    ///
    /// - Parameter destination: Memory or a file, with the largest object to accept.
    func get(
        _ key: String, to destination: ClientRequest.Destination, timeout: Duration
    ) async throws(StoreError) -> Object? {
        var request = request("GET", key, timeout: timeout)
        request.destination = destination
        let response = try await send(request)
        guard response.status == 200 else {
            if Self.isMissing(response) { return nil }
            throw StoreError(response)
        }
        return Object(head: Self.head(response, length: response.length), bytes: response.body, digest: response.digest)
    }

    /// Gets the description of an object; nil if the bucket has none with this key.
    func head(_ key: String, timeout: Duration) async throws(StoreError) -> ObjectHead? {
        let response = try await send(request("HEAD", key, timeout: timeout))
        // The response has no body with a code, so a missing bucket cannot be told from a missing object.
        if response.status == 404 { return nil }
        guard response.status == 200 else { throw StoreError(response) }
        guard let length = response.fields["content-length"].flatMap({ Int($0) }), length >= 0 else {
            throw .invalidResponse(cause: "it has no length")
        }
        return Self.head(response, length: length)
    }

    /// Stores an object, and replaces one with the same key.
    func put(_ key: String, _ upload: Upload, timeout: Duration) async throws(StoreError) {
        let fields = upload.metadata.map { "\(Self.metadataPrefix)\($0.key): \($0.value)" }
        var request = request(
            "PUT", key, digest: Hex.encode(upload.digest), fields: fields + ["content-type: \(upload.mediaType)"],
            timeout: timeout)
        request.body = upload.body
        request.expectsContinue = true
        let response = try await send(request)
        guard response.status == 200 else { throw StoreError(response) }
    }

    /// Deletes an object. Succeeds if the bucket has none with this key.
    func delete(_ key: String, timeout: Duration) async throws(StoreError) {
        let response = try await send(request("DELETE", key, timeout: timeout))
        guard response.status == 204 || response.status == 200 || Self.isMissing(response) else { throw StoreError(response) }
    }

    /// Lists the objects whose keys begin with `prefix`, in the order of their keys.
    ///
    /// - Parameter token: The token of the previous page; nil for the first one.
    /// - Returns: Up to 1,000 objects, and the token of the next page; nil on the last one.
    func list(
        prefix: String, token: String?, pageSize: Int = 1000, timeout: Duration
    ) async throws(StoreError) -> S3ListPage {
        var query = [
            (name: "list-type", value: "2"), (name: "max-keys", value: "\(pageSize)"), (name: "prefix", value: prefix),
        ]
        if let token { query.append((name: "continuation-token", value: token)) }
        var request = request("GET", "", query: query, timeout: timeout)
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
        do throws(HTTPError) {
            return try await http.send(request)
        } catch {
            throw StoreError(error)
        }
    }

    private func request(
        _ method: String, _ key: String, query: [(name: String, value: String)] = [], digest: String? = nil,
        fields: [String] = [], timeout: Duration
    ) -> ClientRequest {
        var request = ClientRequest(
            method, endpoint.url(bucket: bucket, key: key, query: query), fields: fields, timeout: timeout,
            connectTimeout: timeout)
        request.digest = digest
        request.signer = signer
        request.certificateAuthorities = certificateAuthorities
        request.allowsHTTP2 = false
        request.bufferSize = 256 << 10
        return request
    }

    private static func head(_ response: ClientResponse, length: Int) -> ObjectHead {
        var metadata: [String: String] = [:]
        for (name, value) in response.fields where name.hasPrefix(metadataPrefix) {
            metadata[String(name.dropFirst(metadataPrefix.count))] = value
        }
        return ObjectHead(length: length, metadata: metadata)
    }

    /// Whether the response says that the object does not exist. A missing bucket is an error.
    private static func isMissing(_ response: ClientResponse) -> Bool {
        response.status == 404 && S3ErrorBody(response.body).code != "NoSuchBucket"
    }
}

/// A bucket, and how to reach it.
package struct S3Bucket: Sendable, Equatable {
    package let endpoint: S3Endpoint
    package let name: String
    package let credentials: S3Credentials?
    /// A PEM file of certificate authorities to trust instead of the system's.
    package let certificateAuthorities: String?

    /// - Parameter credentials: Nil for requests that are not signed.
    /// - Throws: ``StoreConfigurationError`` for a name that does not fit the endpoint.
    package init(
        endpoint: S3Endpoint, name: String, credentials: S3Credentials?, certificateAuthorities: String? = nil
    ) throws(StoreConfigurationError) {
        try endpoint.validate(bucket: name)
        self.endpoint = endpoint
        self.name = name
        self.credentials = credentials
        self.certificateAuthorities = certificateAuthorities
    }

    /// The URL of the bucket, with a slash at its end, for another HTTP client. That client has to encode a key as
    /// ``PercentEncoding/encode(_:keepsSlashes:)`` does, and to send the path as it is (`CURLOPT_PATH_AS_IS`).
    package var url: String {
        let url = endpoint.url(bucket: name, key: "")
        return url.hasSuffix("/") ? url : url + "/"
    }

    /// Signs requests to the bucket; nil if they are not signed.
    package var signer: SignatureV4? {
        credentials.map {
            SignatureV4(
                region: endpoint.region, accessKey: $0.accessKey, secretKey: $0.secretKey, sessionToken: $0.sessionToken)
        }
    }
}

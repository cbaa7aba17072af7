package import Curl
internal import Digests
internal import SystemIO

/// The signing part of a request to S3: what a client on libcurl has to set besides the URL.
///
/// libcurl signs all header fields that are set by `CURLOPT_HTTPHEADER`. Version 7.88 signs wrongly, so that the server denies the
/// request, if the name of one field is the beginning of another's (`accept` and `accept-encoding`), and where a field is
/// without a value (`accept:`, which removes libcurl's own).
package struct S3Signing: Sendable, Equatable {
    /// The values for libcurl's own signature; nil for a request without credentials.
    package let signature: RequestSignature?
    /// Header fields as `name: value`.
    package let fields: [String]
}

/// Signs requests by AWS Signature Version 4, through libcurl.
package struct S3Signer: Sendable, Equatable {
    private let signature: RequestSignature?
    private let sessionToken: String?

    /// - Parameter credentials: Nil for requests that are not signed, which a public bucket allows.
    package init(region: String, credentials: S3Credentials?) {
        signature = credentials.map {
            RequestSignature(scheme: "aws:amz:\(region):s3", user: $0.accessKey, password: $0.secretKey)
        }
        sessionToken = credentials?.sessionToken
    }

    /// SHA-256 of no bytes.
    private static let emptyDigest = Hex.encode(SHA256.hash([UInt8]()))

    /// The signing part of a request.
    ///
    /// - Parameters:
    ///   - digest: SHA-256 of the body in hexadecimal; nil for an empty body.
    ///   - fields: Further fields as `name: value`, with lower-case names.
    package func sign(digest: String? = nil, fields: [String] = []) -> S3Signing {
        guard signature != nil else { return S3Signing(signature: nil, fields: fields) }
        var all = fields + ["x-amz-content-sha256: \(digest ?? Self.emptyDigest)"]
        if let sessionToken { all.append("x-amz-security-token: \(sessionToken)") }
        return S3Signing(signature: signature, fields: all)
    }
}

/// An object, or the beginning of the names of objects, as `s3://bucket/key` names it.
package struct S3Location: Sendable, Equatable {
    package let bucket: String
    /// The key, without a slash before it. It may be empty.
    package let key: String

    /// Reads `s3://bucket/key`. The key is taken as it stands, without decoding.
    ///
    /// - Throws: ``StoreConfigurationError`` for other text, and for a key with a part that is empty, `.` or `..`, which proxies
    ///   and servers would resolve.
    package init(_ text: String) throws(StoreConfigurationError) {
        let scheme = "s3://"
        guard text.lowercased().hasPrefix(scheme) else { throw StoreConfigurationError("origin", "must begin with s3://") }
        let rest = text.dropFirst(scheme.count)
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        bucket = String(rest[..<slash])
        key = slash == rest.endIndex ? "" : String(rest[rest.index(after: slash)...])
        try Self.validate(key: key.hasSuffix("/") ? key.dropLast() : key[...], setting: "origin")
    }

    /// Checks a key or a prefix without a slash at its end.
    static func validate(key: Substring, setting: String, maxLength: Int = 512) throws(StoreConfigurationError) {
        guard key.utf8.count <= maxLength, !key.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
            throw StoreConfigurationError(setting, "must have at most \(maxLength) bytes and no control characters")
        }
        let parts = key.split(separator: "/", omittingEmptySubsequences: false)
        guard key.isEmpty || parts.allSatisfy({ !["", ".", ".."].contains($0) }) else {
            throw StoreConfigurationError(setting, "must not contain empty parts, “.” or “..”")
        }
    }
}

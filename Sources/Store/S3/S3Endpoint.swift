internal import HTTPClient
internal import SystemIO

/// An invalid setting of the shared store. The description is a sentence that begins with the setting's name.
package struct StoreConfigurationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The setting's name, without the name of its group.
    package let setting: String
    /// The rest of the sentence.
    package let reason: String

    package init(_ setting: String, _ reason: String) {
        self.setting = setting
        self.reason = reason
    }

    package var description: String { "\(setting) \(reason)" }
}

/// The keys of an S3 account.
package struct S3Credentials: Sendable, Equatable {
    package let accessKey: String
    package let secretKey: String
    /// The token of temporary credentials.
    package let sessionToken: String?

    /// - Throws: ``StoreConfigurationError`` for an empty key, or one that is not printable ASCII.
    package init(accessKey: String, secretKey: String, sessionToken: String? = nil) throws(StoreConfigurationError) {
        for (name, text) in [("access_key", accessKey), ("secret_key", secretKey), ("session token", sessionToken ?? "-")] {
            guard !text.isEmpty, text.utf8.count <= 8192, text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw StoreConfigurationError(name, "must be printable ASCII without spaces")
            }
        }
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    func signature(for region: String) -> SignatureV4 {
        SignatureV4(region: region, accessKey: accessKey, secretKey: secretKey, sessionToken: sessionToken)
    }
}

/// The address of an S3 service: where requests go, and for which region they are signed.
package struct S3Endpoint: Sendable, Equatable {
    private let scheme: String
    /// The host, with the port if the endpoint names one.
    private let authority: String
    package let region: String
    /// Whether the bucket is part of the path (`https://host/bucket/key`), rather than of the host (`https://bucket.host/key`).
    package let usesPathStyle: Bool

    /// - Parameters:
    ///   - url: `http://` or `https://`, a host, and optionally a port; nil for Amazon's service in the region.
    ///   - region: The region that signatures name. Servers without regions expect `us-east-1`.
    /// - Throws: ``StoreConfigurationError`` for anything else.
    package init(url: String?, region: String, usesPathStyle: Bool) throws(StoreConfigurationError) {
        // The region is part of a host's name, and of the signature's scope, in which a slash separates the parts.
        guard (1...63).contains(region.utf8.count), region.utf8.allSatisfy({ Self.isLabel($0) }) else {
            throw StoreConfigurationError("region", "must be a name such as us-east-1")
        }
        let url = url ?? "https://s3.\(region).amazonaws.com"
        guard let range = url.utf8.firstRange(of: "://".utf8),
            ["http", "https"].contains(url[..<range.lowerBound].lowercased())
        else {
            throw StoreConfigurationError("endpoint", "must begin with http:// or https://")
        }
        var authority = url[range.upperBound...]
        if authority.hasSuffix("/") { authority.removeLast() }
        guard Self.isAuthority(authority) else {
            throw StoreConfigurationError("endpoint", "must be a host with an optional port, without a path")
        }
        scheme = url[..<range.lowerBound].lowercased()
        self.authority = authority.lowercased()
        self.region = region
        self.usesPathStyle = usesPathStyle
    }

    /// Checks a bucket's name against this endpoint.
    ///
    /// - Throws: ``StoreConfigurationError`` for a name that no server accepts, or that cannot be part of the host.
    package func validate(bucket: String) throws(StoreConfigurationError) {
        guard (1...63).contains(bucket.utf8.count), bucket.utf8.allSatisfy({ Self.isLabel($0) || $0 == UInt8(ascii: ".") }),
            bucket.first != ".", bucket.last != ".", !bucket.contains("..")
        else { throw StoreConfigurationError("bucket", "must be 1 to 63 of the characters a-z, 0-9, -, _ and .") }
        guard !usesPathStyle else { return }
        // A certificate for *.host covers one label only (RFC 9525 section 6.3).
        guard scheme == "http" || !bucket.contains(".") else {
            throw StoreConfigurationError("bucket", "must not contain a dot over TLS, unless path_style is on")
        }
        // No name lies below an address, whose last part is a number.
        let isAddress =
            authority.hasPrefix("[") || authority.prefix { $0 != ":" }.split(separator: ".").last.flatMap { Int($0) } != nil
        guard !isAddress, !bucket.contains("_"), bucket == bucket.lowercased() else {
            throw StoreConfigurationError("bucket", "cannot be part of a host's name: set path_style")
        }
    }

    /// The URL of an object, or of the bucket for an empty key. The path is encoded as it is signed.
    ///
    /// - Parameter query: Names and values, which are encoded.
    package func url(bucket: String, key: String, query: [(name: String, value: String)] = []) -> String {
        let path = PercentEncoding.encode(key, keepsSlashes: true)
        var url =
            usesPathStyle
            ? "\(scheme)://\(authority)/\(bucket)\(path.isEmpty ? "" : "/\(path)")"
            : "\(scheme)://\(bucket).\(authority)/\(path)"
        let pairs = query.map { name, value in
            PercentEncoding.encode(name, keepsSlashes: false) + "=" + PercentEncoding.encode(value, keepsSlashes: false)
        }
        if !pairs.isEmpty { url += "?" + pairs.joined(separator: "&") }
        return url
    }

    private static func isLabel(_ byte: UInt8) -> Bool {
        byte.isLetterOrDigit || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
    }

    /// Whether the text is a host's name or address with an optional port: no user, path, query or fragment.
    private static func isAuthority(_ text: Substring) -> Bool {
        var host = text
        if let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let port = Int(text[text.index(after: colon)...]), (1...65535).contains(port) else { return false }
            host = text[..<colon]
        }
        if host.hasPrefix("["), host.hasSuffix("]") {
            return host.utf8.count > 2
                && host.dropFirst().dropLast().utf8.allSatisfy {
                    isLabel($0) || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".")
                }
        }
        return (1...253).contains(host.utf8.count) && host.utf8.allSatisfy { isLabel($0) || $0 == UInt8(ascii: ".") }
    }
}

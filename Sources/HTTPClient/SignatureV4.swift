internal import Digests
internal import Glibc
internal import SystemIO

/// Signs requests to S3 with AWS Signature Version 4.
///
/// Only the fields that determine the meaning of a request are signed: `Host`, `Content-Type` and `x-amz-…`. Proxies in front
/// of a bucket rewrite others, such as `Accept-Encoding`. libcurl would sign every field, and since 8.13 it refuses to sign a
/// path that is sent unchanged (`CURLOPT_PATH_AS_IS`).
package struct SignatureV4: Sendable, Equatable {
    private let region: String
    private let accessKey: String
    private let secretKey: String
    private let sessionToken: String?

    /// - Parameter sessionToken: The session token of temporary credentials.
    package init(region: String, accessKey: String, secretKey: String, sessionToken: String? = nil) {
        self.region = region
        self.accessKey = accessKey
        self.secretKey = secretKey
        self.sessionToken = sessionToken
    }

    /// Signs a request that is about to be sent.
    ///
    /// - Parameters:
    ///   - url: An absolute URL, percent-encoded as S3 encodes keys. It is signed unchanged and must be sent unchanged.
    ///   - fields: Header fields as `name: value`.
    ///   - digest: The hexadecimal SHA-256 of the body; nil for an empty body.
    ///   - unixSeconds: The time of the signature, which S3 compares with its own clock.
    /// - Returns: All header fields to send: `fields`, `Host` and the signature fields.
    package func sign(
        _ method: String, _ url: String, fields: [String] = [], digest: String? = nil, unixSeconds: Int = time(nil)
    ) -> [String] {
        let target = Target(url)
        let digest = digest ?? Self.emptyDigest
        let date = Self.timestamp(unixSeconds)
        var all = fields.map { Field(line: $0) }
        all += [
            Field("Host", target.host), Field("x-amz-content-sha256", digest), Field("x-amz-date", date),
        ]
        if let sessionToken { all.append(Field("x-amz-security-token", sessionToken)) }

        let signed = all.filter(\.isSigned).sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
        let names = signed.map(\.key).joined(separator: ";")
        let lines = signed.map { "\($0.key):\($0.canonicalValue)\n" }.joined()
        let request = [method, target.path, target.canonicalQuery, lines, names, digest].joined(separator: "\n")

        let day = String(date.prefix(8))
        let scope = "\(day)/\(region)/s3/aws4_request"
        let text = ["AWS4-HMAC-SHA256", date, scope, Hex.encode(SHA256.hash(request.utf8))].joined(separator: "\n")
        var key = Array("AWS4\(secretKey)".utf8)
        for part in [day, region, "s3", "aws4_request", text] { key = HMACSHA256(key: key).code(for: part.utf8) }
        let authorization =
            "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), SignedHeaders=\(names), Signature=\(Hex.encode(key))"
        return all.map(\.line) + ["Authorization: \(authorization)"]
    }

    private static let emptyDigest = Hex.encode(SHA256.hash([UInt8]()))

    /// Formats a time as `20130524T000000Z`.
    private static func timestamp(_ unixSeconds: Int) -> String {
        let time = CivilTime(unixSeconds: unixSeconds)
        let date = "\(CivilTime.digits(time.year, 4))\(CivilTime.digits(time.month))\(CivilTime.digits(time.day))"
        return "\(date)T\(time.clock.filter { $0 != ":" })Z"
    }
}

/// A header field that the signature may cover.
private struct Field {
    let name: String
    let value: String

    init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }

    /// - Parameter line: A field as `name: value`.
    init(line: String) {
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(String(parts[0]), parts.count == 2 ? String(parts[1].drop { $0 == " " }) : "")
    }

    /// The lowercase name, by which fields are sorted.
    var key: String { name.lowercased() }

    var isSigned: Bool { key == "host" || key == "content-type" || key.hasPrefix("x-amz-") }

    /// The value with surrounding spaces removed and inner runs of spaces collapsed.
    var canonicalValue: String { value.split(separator: " ").joined(separator: " ") }

    /// The field in libcurl's syntax: a semicolon marks a field without a value.
    var line: String { value.isEmpty ? "\(name);" : "\(name): \(value)" }
}

/// The signed parts of a URL.
private struct Target {
    /// The value of `Host`: without the scheme's default port.
    let host: String
    let path: String
    /// The query as it is sent.
    private let query: Substring

    init(_ url: String) {
        let start = url.utf8.firstRange(of: "://".utf8)
        let rest = url[(start?.upperBound ?? url.startIndex)...]
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest[authority.endIndex...].prefix { $0 != "?" }
        let defaultPort = url.hasPrefix("https:") ? ":443" : ":80"
        host = String(authority.hasSuffix(defaultPort) ? authority.dropLast(defaultPort.utf8.count) : authority)
        self.path = path.isEmpty ? "/" : String(path)
        query = rest[path.endIndex...].dropFirst()
    }

    /// The parameters sorted by name, then by value, each with an equals sign.
    var canonicalQuery: String {
        let pairs = query.split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: Array(parts[0].utf8), value: Array((parts.count == 2 ? parts[1] : "").utf8))
        }
        let sorted = pairs.sorted { left, right in
            left.name == right.name
                ? left.value.lexicographicallyPrecedes(right.value) : left.name.lexicographicallyPrecedes(right.name)
        }
        return sorted.map { String(decoding: $0.name + [UInt8(ascii: "=")] + $0.value, as: UTF8.self) }.joined(separator: "&")
    }
}

internal import Foundation
internal import Glibc
internal import HTTPClient
internal import SystemIO

/// The sources of keys apart from settings and `AWS_ACCESS_KEY_ID`, in the order in which they are asked: a credentials file,
/// web identity (IRSA), the service that `AWS_CONTAINER_CREDENTIALS_…` names (ECS, EKS), and the metadata service of EC2,
/// version 2.
///
/// Reads the environment variables of Amazon's programs. All functions block.
struct CredentialSources: Sendable {
    private let environment: [String: String]

    /// The largest file, in bytes.
    private static let maxLength = 64 << 10
    private static let attempts = 3

    /// - Parameter environment: Without empty values.
    init(_ environment: [String: String]) {
        self.environment = environment
    }

    /// Asks the sources in order.
    ///
    /// - Returns: Nil if there is no source.
    /// - Throws: ``StoreError/noKeys(cause:)`` for a source that exists and has no keys.
    func find() throws(StoreError) -> FoundKeys? {
        if let keys = try fromFile() { return keys }
        if let keys = try fromWebIdentity() { return keys }
        if let keys = try fromContainer() { return keys }
        return try fromInstance()
    }

    // MARK: The credentials file

    private func fromFile() throws(StoreError) -> FoundKeys? {
        let chosen = environment["AWS_SHARED_CREDENTIALS_FILE"]
        guard let path = chosen ?? environment["HOME"].map({ "\($0)/.aws/credentials" }) else { return nil }
        guard let bytes = read(path) else {
            if chosen == nil { return nil }
            throw .noKeys(cause: "AWS_SHARED_CREDENTIALS_FILE cannot be read")
        }
        let profile = environment["AWS_PROFILE"] ?? "default"
        guard let fields = Self.fields(ofProfile: profile, in: bytes) else {
            if environment["AWS_PROFILE"] == nil { return nil }
            throw .noKeys(cause: "the credentials file has no profile of the name in AWS_PROFILE")
        }
        let (access, secret) = (fields["aws_access_key_id"], fields["aws_secret_access_key"])
        // For example, a profile may name a role, which this program does not assume.
        if access == nil, secret == nil { return nil }
        return try keys(access, secret, fields["aws_session_token"], expires: nil, source: "the credentials file")
    }

    // MARK: Web identity

    private func fromWebIdentity() throws(StoreError) -> FoundKeys? {
        let (path, role) = (environment["AWS_WEB_IDENTITY_TOKEN_FILE"], environment["AWS_ROLE_ARN"])
        guard let path else { return nil }
        guard let role else { throw .noKeys(cause: "AWS_WEB_IDENTITY_TOKEN_FILE is set, and AWS_ROLE_ARN is not") }
        // The token is replaced from time to time.
        guard let token = read(path).map({ Self.trimmed($0) }), !token.isEmpty else {
            throw .noKeys(cause: "AWS_WEB_IDENTITY_TOKEN_FILE cannot be read")
        }
        let parameters = [
            ("Action", "AssumeRoleWithWebIdentity"), ("Version", "2011-06-15"), ("RoleArn", role),
            ("RoleSessionName", environment["AWS_ROLE_SESSION_NAME"] ?? "gifreel"), ("WebIdentityToken", token),
        ]
        let body = parameters.map { "\($0)=\(PercentEncoding.encode($1, keepsSlashes: false))" }.joined(separator: "&")
        let source = "the security token service"
        let response = try ask(
            source, "POST", "\(tokenServiceURL)/",
            ["Content-Type: application/x-www-form-urlencoded", "Accept: application/xml"], body: Array(body.utf8),
            timeout: .seconds(5))
        let root = XMLElement(document: response.body)
        guard response.status == 200 else {
            let code = root?.children.first { $0.name == "Error" }?.text("Code") ?? ""
            throw .noKeys(cause: "\(source) answers \(response.status) \(S3ErrorBody.printable(code))")
        }
        let found = root?.children.first { $0.name == "AssumeRoleWithWebIdentityResult" }?
            .children.first { $0.name == "Credentials" }
        return try keys(
            found?.text("AccessKeyId"), found?.text("SecretAccessKey"), found?.text("SessionToken"),
            expires: found?.text("Expiration"), source: source)
    }

    private var tokenServiceURL: String {
        if let url = environment["AWS_ENDPOINT_URL_STS"] { return url.hasSuffix("/") ? String(url.dropLast()) : url }
        guard let region = environment["AWS_REGION"] ?? environment["AWS_DEFAULT_REGION"] else {
            return "https://sts.amazonaws.com"
        }
        return "https://sts.\(region).amazonaws.com\(region.hasPrefix("cn-") ? ".cn" : "")"
    }

    // MARK: Containers

    private func fromContainer() throws(StoreError) -> FoundKeys? {
        let url: String
        if let path = environment["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] {
            url = "http://169.254.170.2\(path.hasPrefix("/") ? "" : "/")\(path)"
        } else if let full = environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] {
            guard Self.isTrusted(full) else {
                throw .noKeys(cause: "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine")
            }
            url = full
        } else {
            return nil
        }
        var token = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN"]
        if let path = environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] {
            guard let bytes = read(path) else {
                throw .noKeys(cause: "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE cannot be read")
            }
            token = Self.trimmed(bytes)
        }
        guard token?.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) ?? true else {
            throw .noKeys(cause: "the token for the credentials of the container is not one line of ASCII")
        }
        let source = "the credentials service of the container"
        let fields = token.map { ["Authorization: \($0)"] } ?? []
        return try keys(try ask(source, "GET", url, fields, timeout: .seconds(2)), source: source)
    }

    /// Whether a token may be sent to this URL: over TLS, to this machine, or to the addresses of ECS and EKS.
    private static func isTrusted(_ url: String) -> Bool {
        if url.hasPrefix("https://") { return true }
        guard url.hasPrefix("http://") else { return false }
        let authority = url.dropFirst(7).prefix { !"/?#".contains($0) }
        let host = authority.hasPrefix("[") ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
        let isLoopback =
            host.hasPrefix("127.") && host.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }
        return isLoopback || ["localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"].contains(String(host))
    }

    // MARK: EC2

    private func fromInstance() throws(StoreError) -> FoundKeys? {
        guard environment["AWS_EC2_METADATA_DISABLED"]?.lowercased() != "true" else { return nil }
        let usesIPv6 = environment["AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"]?.lowercased() == "ipv6"
        let chosen = environment["AWS_EC2_METADATA_SERVICE_ENDPOINT"].map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        let base = (chosen ?? (usesIPv6 ? "http://[fd00:ec2::254]" : "http://169.254.169.254")) + "/latest"
        // Version 1 is not used, because it needs no token: anything that can make this program send a request could read its
        // keys.
        let asked = try? ask(
            "", "PUT", "\(base)/api/token", ["X-aws-ec2-metadata-token-ttl-seconds: 21600"], timeout: .seconds(1), attempts: 2)
        // Not on EC2, or on an instance that denies metadata to this program.
        guard let asked, asked.status == 200 else { return nil }
        let token = Self.trimmed(asked.body)
        guard !token.isEmpty, token.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else { return nil }
        let source = "the metadata service of EC2"
        let fields = ["X-aws-ec2-metadata-token: \(token)"]
        let roles = "\(base)/meta-data/iam/security-credentials/"
        let list = try ask(source, "GET", roles, fields, timeout: .seconds(2))
        // The instance has no role.
        if list.status == 404 { return nil }
        let role = String(Self.trimmed(list.body).prefix { !$0.isNewline })
        guard list.status == 200, !role.isEmpty else { throw .noKeys(cause: "\(source) answers \(list.status)") }
        let response = try ask(
            source, "GET", roles + PercentEncoding.encode(role, keepsSlashes: false), fields, timeout: .seconds(2))
        return try keys(response, source: source)
    }

    // MARK: Requests and responses

    /// The document that the services of containers and instances return.
    private struct Document: Decodable {
        let AccessKeyId: String?
        let SecretAccessKey: String?
        let Token: String?
        let Expiration: String?
    }

    private func keys(_ response: ClientResponse, source: String) throws(StoreError) -> FoundKeys {
        guard response.status == 200 else { throw .noKeys(cause: "\(source) answers \(response.status)") }
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(response.body)) else {
            throw .noKeys(cause: "\(source) answers with something else")
        }
        return try keys(
            document.AccessKeyId, document.SecretAccessKey, document.Token, expires: document.Expiration, source: source)
    }

    /// - Parameter expires: A time in UTC in ISO 8601 format; nil for keys that do not expire.
    private func keys(
        _ access: String?, _ secret: String?, _ token: String?, expires: String?, source: String
    ) throws(StoreError) -> FoundKeys {
        guard let access, let secret else { throw .noKeys(cause: "\(source) has one key without the other, or none") }
        let token = token.flatMap { $0.isEmpty ? nil : $0 }
        guard let credentials = try? S3Credentials(accessKey: access, secretKey: secret, sessionToken: token) else {
            throw .noKeys(cause: "a key of \(source) is not printable ASCII")
        }
        let time = expires.flatMap { S3ListPage.seconds(iso8601: $0) }
        if expires != nil, time == nil { throw .noKeys(cause: "the time at which keys of \(source) expire cannot be read") }
        return FoundKeys(credentials: credentials, expires: time, source: source)
    }

    /// Sends a request, and retries it if the server does not answer or fails.
    private func ask(
        _ source: String, _ method: String, _ url: String, _ fields: [String], body: [UInt8] = [], timeout: Duration,
        attempts: Int = CredentialSources.attempts
    ) throws(StoreError) -> ClientResponse {
        var request = ClientRequest(method, url, fields: fields, timeout: timeout, connectTimeout: timeout)
        if method != "GET" { request.body = .bytes(body) }
        var failures = 0
        while true {
            do throws(HTTPError) {
                let response = try HTTPClient.perform(request)
                failures += 1
                if failures >= attempts || response.status < 500 { return response }
            } catch {
                failures += 1
                let error = StoreError(error)
                guard failures < attempts, error.isTransient else { throw .noKeys(cause: "\(source): \(error)") }
            }
            let pause = Backoff(first: .milliseconds(100), longest: .seconds(1)).pause(after: failures)
            usleep(UInt32(pause / .microseconds(1)))
        }
    }

    /// The content of a file; nil if it cannot be read or is too long.
    private func read(_ path: String) -> [UInt8]? {
        let data = FileHandle(forReadingAtPath: path).flatMap { try? $0.read(upToCount: Self.maxLength + 1) }
        return data.flatMap { $0.count <= Self.maxLength ? Array($0) : nil }
    }

    private static func trimmed(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns the values of a profile by lower-case name; nil if the file lacks the profile. The file consists of sections in
    /// brackets and lines `name = value`.
    private static func fields(ofProfile profile: String, in bytes: [UInt8]) -> [String: String]? {
        var fields: [String: String]?
        var isInProfile = false
        for line in bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) {
            let text = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespaces)
            if text.isEmpty || text.hasPrefix("#") || text.hasPrefix(";") { continue }
            if text.hasPrefix("[") {
                let name = text.dropFirst().prefix { $0 != "]" }.trimmingCharacters(in: .whitespaces)
                isInProfile = name == profile
                if isInProfile, fields == nil { fields = [:] }
            } else if isInProfile, let equals = text.firstIndex(of: "=") {
                let name = text[..<equals].trimmingCharacters(in: .whitespaces).lowercased()
                let value = text[text.index(after: equals)...].trimmingCharacters(in: .whitespaces)
                if !value.isEmpty { fields?[name] = value }
            }
        }
        return fields
    }
}

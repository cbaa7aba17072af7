internal import SystemIO

/// The address of a Redis or Valkey server: `redis://[user:password@]host[:port][/database]`, the same with `rediss` for TLS,
/// or `unix:/path`.
///
/// The query may name `db`, `user` and `password` for a Unix socket, and `ca` for TLS: a file of certificates to trust in place
/// of the system's. User name and password are percent-decoded.
package struct RedisAddress: Sendable, Equatable, CustomStringConvertible {
    package enum Endpoint: Sendable, Equatable {
        case tcp(host: String, port: UInt16)
        case unix(path: String)
    }

    package let endpoint: Endpoint
    package let usesTLS: Bool
    /// The file of certificates to trust, in PEM; nil for the system's.
    package let caFile: String?
    package let user: String?
    package let password: String?
    package let database: Int

    package init(_ text: String) throws(ClusterSettingError) {
        let queryStart = text.firstIndex(of: "?") ?? text.endIndex
        let query = try Self.parameters(text[queryStart...].dropFirst())
        let address = text[..<queryStart]
        if address.hasPrefix("unix:") {
            var path = address.dropFirst(5)
            if path.hasPrefix("//") { path = path.dropFirst(2) }
            guard path.hasPrefix("/"), path.utf8.count < 108, !path.utf8.contains(0) else {
                throw ClusterSettingError(description: "unix: needs an absolute path of at most 107 bytes")
            }
            endpoint = .unix(path: String(path))
            (usesTLS, caFile) = (false, nil)
            (user, password) = (query["user"], query["password"])
            database = try Self.database(query["db"] ?? "0")
            try Self.check(query, allowed: ["db", "user", "password"])
            return
        }
        usesTLS = address.hasPrefix("rediss://")
        guard usesTLS || address.hasPrefix("redis://") else {
            throw ClusterSettingError(description: "the address must begin with redis://, rediss:// or unix:")
        }
        var rest = address.dropFirst(usesTLS ? 9 : 8)
        if let at = rest.lastIndex(of: "@") {
            let parts = rest[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            let name = try Self.decoded(parts[0])
            user = name.isEmpty || parts.count == 1 ? nil : name
            // `redis://secret@host` names a password only.
            let secret = try Self.decoded(parts.count == 2 ? parts[1] : parts[0])
            password = secret.isEmpty ? nil : secret
            rest = rest[rest.index(after: at)...]
        } else {
            (user, password) = (nil, nil)
        }
        let slash = rest.firstIndex(of: "/") ?? rest.endIndex
        let number = rest[slash...].dropFirst()
        database = try Self.database(number.isEmpty ? "0" : String(number))
        endpoint = try Self.endpoint(rest[..<slash])
        try Self.check(query, allowed: usesTLS ? ["ca"] : [])
        caFile = query["ca"]
        guard caFile?.isEmpty != true else { throw ClusterSettingError(description: "ca= needs the path of a file") }
    }

    /// The address without user name and password.
    package var description: String {
        let path = database == 0 ? "" : "/\(database)"
        switch endpoint {
        case .unix(let file): return "unix:\(file)" + (database == 0 ? "" : "?db=\(database)")
        case .tcp(let host, let port):
            return "\(usesTLS ? "rediss" : "redis")://\(host.contains(":") ? "[\(host)]" : host):\(port)\(path)"
        }
    }

    private static func endpoint(_ text: Substring) throws(ClusterSettingError) -> Endpoint {
        var host = text
        var port: UInt16 = 6379
        let bracket = text.lastIndex(of: "]") ?? text.startIndex
        if let colon = text[bracket...].lastIndex(of: ":") {
            host = text[..<colon]
            guard let number = UInt16(text[text.index(after: colon)...]), number > 0 else {
                throw ClusterSettingError(description: "the port must be a number from 1 to 65535")
            }
            port = number
        }
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else {
            throw ClusterSettingError(description: "the address has no valid host")
        }
        return .tcp(host: String(host), port: port)
    }

    private static func database(_ text: String) throws(ClusterSettingError) -> Int {
        guard let number = Int(text), (0...65_535).contains(number), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw ClusterSettingError(description: "the database must be a number from 0 to 65535")
        }
        return number
    }

    private static func parameters(_ text: Substring) throws(ClusterSettingError) -> [String: String] {
        var parameters: [String: String] = [:]
        for pair in text.split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, parameters[String(parts[0])] == nil else {
                throw ClusterSettingError(description: "the address has a malformed or repeated parameter")
            }
            parameters[String(parts[0])] = try decoded(parts[1])
        }
        return parameters
    }

    private static func check(_ query: [String: String], allowed: Set<String>) throws(ClusterSettingError) {
        if let name = query.keys.sorted().first(where: { !allowed.contains($0) }) {
            throw ClusterSettingError(description: "the address has the unknown parameter \(name)")
        }
    }

    private static func decoded(_ text: Substring) throws(ClusterSettingError) -> String {
        guard let decoded = PercentEncoding.decode(text) else {
            throw ClusterSettingError(description: "the address has a percent-encoding that is malformed or not UTF-8")
        }
        return decoded
    }
}

/// A setting of a cluster that cannot be used. The description is a sentence without the setting's name. It never contains a
/// password.
package struct ClusterSettingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The last part of the setting's name: `redis`, `name` or `node`.
    package internal(set) var setting = "redis"
    package let description: String
}

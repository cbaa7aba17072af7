internal import Digests
package import Fetch
internal import Foundation
package import Renditions
internal import SystemIO

/// The secrets that sign requests. The first key signs and all keys verify, so that keys can be rotated without downtime.
///
/// The description contains no key, so that string interpolation cannot write one to a log.
package struct SigningKeys: Sendable, CustomStringConvertible {
    private let keys: [SigningKey]

    /// - Parameters:
    ///   - texts: Keys without names; their UTF-8 bytes are the secrets.
    ///   - named: Keys with names, which come after those without.
    package init(_ texts: [String] = [], named: [SigningKey] = []) {
        keys = texts.map { SigningKey(secret: $0) } + named
    }

    private init(_ key: SigningKey) {
        keys = [key]
    }

    package var isEmpty: Bool { keys.isEmpty }

    /// The names of the keys that have one.
    var names: [String] { keys.compactMap(\.name) }

    package var description: String {
        let named = keys.filter { $0.name != nil }.map(\.description)
        return "\(keys.count) signing keys" + (named.isEmpty ? "" : ": \(named.joined(separator: "; "))")
    }

    /// Whether the signing key may sign requests for a source, or for an upload if the source is nil; true without keys.
    package func permits(_ source: SourceURL?) -> Bool { keys.first?.permits(source) ?? true }

    /// Returns only the key with a name; nil if there is none.
    package func named(_ name: String) -> SigningKeys? { keys.first { $0.name == name }.map(SigningKeys.init) }

    /// Returns only the key that verified the signature of a request.
    func only(_ key: SigningKey?) -> SigningKeys { key.map(SigningKeys.init) ?? SigningKeys() }

    /// The signature of a text: base64url(HMAC-SHA256(key, text)); nil without keys.
    func signature(of text: String) -> String? {
        keys.first.map { Base64URL.encode($0.authentication.code(for: text.utf8)) }
    }

    /// The key that verifies the signature of one of the texts; nil for none. The comparison takes constant time.
    func key(verifying signature: String, of texts: [String]) -> SigningKey? {
        guard let code = Base64URL.decode(signature) else { return nil }
        return keys.first { key in texts.contains { key.authentication.isValid(code, for: $0.utf8) } }
    }
}

extension SigningKeys {
    /// Writes a target such as `/mp4,expires=…,quality=80,sig=…/https://example.com/a.gif`.
    ///
    /// - Parameters:
    ///   - name: The name of a format, or ``Route/auto``.
    ///   - options: The options with the values for the target, in any order; the target contains them sorted by name.
    ///   - source: Nil for an upload.
    ///   - expires: The expiry of the signature in seconds since 1970; nil for none.
    ///   - fileName: The name with which the path ends, before a query with the source; nil for a path that ends with the
    ///     source.
    /// - Returns: Nil if an option contains a character that cannot be signed.
    package func target(
        _ name: String, _ options: [QueryItem] = [], of source: SourceURL?, expires: Int64? = nil,
        fileName: String? = nil
    ) -> String? {
        guard let options = signed(name, options, of: source, expires: expires) else { return nil }
        // A colon, as in `gravity`, may stay.
        let values = options.map { "\($0.name)=\(PercentEncoding.encode($0.value).replacing("%3A", with: ":"))" }
        let start = "/" + ([name] + values).joined(separator: ",")
        guard let source else { return start }
        guard let fileName else { return "\(start)/\(source.text)" }
        return "\(start)/\(PercentEncoding.encode(fileName))?url=\(PercentEncoding.encode(source.text))"
    }

    /// Returns the options with `expires` and `sig`, for a target of another form: a mount's query. The parameters are those of
    /// ``target(_:_:of:expires:fileName:)``.
    func signed(
        _ name: String, _ options: [QueryItem], of source: SourceURL?, expires: Int64?
    ) -> [QueryItem]? {
        var options = options
        if let expires { options.append(QueryItem(name: "expires", value: String(expires))) }
        options.sort { $0.name < $1.name }
        guard let text = SignedText(name, options: options, source: source?.canonical ?? "") else { return nil }
        if let signature = signature(of: text.text) { options.append(QueryItem(name: "sig", value: signature)) }
        return options
    }

    /// Signs a path below a mount.
    ///
    /// - Parameters:
    ///   - text: The path, or the `file://` or `s3://` URL of a source.
    ///   - name: The name of the format of the path for such a URL.
    ///   - options: Options of the form `name=value`, which are added to the query of the path.
    /// - Returns: The signed path, and whether the hosts of the key permit it; nil if an option has a character that cannot be
    ///   signed.
    /// - Throws: The server's problem for an invalid path.
    package func mountTarget(
        _ text: String, _ name: String, _ options: [String], mounts: [String: Mount], _ presets: RenditionPresets
    ) throws(Problem) -> (path: String, isPermitted: Bool)? {
        let parser = RouteParser(
            mounts: mounts, defaults: RenditionDefaults(presets: presets), offered: Rendition.Format.allCases)
        let noMount = Problem.notFound("No mount of the settings has the source “\(text)”.")
        let isPath = text.utf8.first == UInt8(ascii: "/")
        guard var path = isPath ? text : parser.path(ofMountedSource: text, name) else { throw noMount }
        func add(_ name: String, _ value: String) {
            path += "\(path.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")\(name)=\(PercentEncoding.encode(value))"
        }
        for option in options {
            let parts = option[...].parts(at: UInt8(ascii: "="), maxSplits: 1, keepingEmpty: true)
            guard parts.count == 2 else { throw .badOption(option, "is not of the form name=value") }
            add(String(parts[0]), String(parts[1]))
        }
        let target = try parser.parse(path)
        guard target.mount != nil, let source = target.source, let credentials = target.credentials else { throw noMount }
        guard credentials.signature == nil else { throw .badOption(OptionReader.signature, "is given already") }
        let signed = SignedText(credentials.name, options: credentials.options, source: source.canonical)
        guard let signature = signed.flatMap({ signature(of: $0.text) }) else { return nil }
        add(OptionReader.signature, signature)
        return (path, permits(source))
    }
}

/// A secret that signs requests, with the limits of the requests that it signs.
package struct SigningKey: Sendable, CustomStringConvertible {
    fileprivate let authentication: HMACSHA256
    /// The name in metrics; nil for a key without one.
    package let name: String?
    /// The sources for which the key may sign requests; empty for all.
    private let sources: [SourcePattern]
    /// The limit on the misses of all requests of the key; nil applies each client's limit.
    let rate: RateLimit?

    package init(secret: String, name: String? = nil, sources: [SourcePattern] = [], rate: RateLimit? = nil) {
        authentication = HMACSHA256(key: secret.utf8)
        self.name = name
        self.sources = sources
        self.rate = rate
    }

    package var description: String {
        "\(name ?? "without a name"), sources: \(sources), rate: \(rate.map { "\($0)" } ?? "none")"
    }

    /// Whether the key may sign a request for a source. A key that is limited to some sources cannot sign uploads.
    ///
    /// - Parameter source: Nil for an upload.
    func permits(_ source: SourceURL?) -> Bool {
        sources.isEmpty || source.map { source in sources.contains { $0.matches(source) } } ?? false
    }
}

/// Base64 for URLs, without padding (RFC 4648 section 5).
enum Base64URL {
    static func encode(_ bytes: some Sequence<UInt8>) -> String {
        String(
            Data(bytes).base64EncodedString().compactMap { character in
                switch character {
                case "+": "-"
                case "/": "_"
                case "=": nil
                default: character
                }
            })
    }

    /// Decodes a text. Returns nil for every text that ``encode(_:)`` does not produce, so that bytes have a single encoding.
    static func decode(_ text: String) -> [UInt8]? {
        var standard = String(text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
        standard += String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let data = Data(base64Encoded: standard) else { return nil }
        let bytes = Array(data)
        return encode(bytes) == text ? bytes : nil
    }
}

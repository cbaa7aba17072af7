internal import Fetch
internal import Foundation
internal import Renditions
internal import Settings
internal import Store
internal import SystemIO
internal import Web

// Settings with names that the user chooses: signing keys, purge hooks and presets.

extension SigningKeys {
    /// - Throws: ``SettingsError`` for the first key that cannot be used.
    init(_ settings: Settings.Signing) throws(SettingsError) {
        var named: [SigningKey] = []
        for (name, key) in settings.named.sorted(by: { $0.key < $1.key }) {
            guard name.utf8.allSatisfy(Route.isNameByte) else {
                throw SettingsError("signing.keys.\(name) cannot be used: a key's name consists of a-z, 0-9, - and _.")
            }
            named.append(
                SigningKey(
                    secret: key.secret ?? "", name: name, sources: key.hosts,
                    rate: RateLimit(key.missesPerMinute, burst: key.burst)))
        }
        self.init(settings.keys, named: named)
    }
}

extension PurgeHook {
    /// - Throws: ``SettingsError`` if the hook cannot be called.
    init(_ settings: Settings.Purge.Hook, named name: String) throws(SettingsError) {
        guard name.utf8.allSatisfy(Route.isNameByte) else {
            throw SettingsError("purge.hooks.\(name) cannot be used: a hook's name consists of a-z, 0-9, - and _.")
        }
        guard !settings.scopes.isEmpty else {
            throw SettingsError("purge.hooks.\(name).scopes is empty; it must name url, prefix, host, object or all.")
        }
        let url = settings.url ?? ""
        try SettingParser.checkAddress(url, "purge.hooks.\(name).url")
        try SettingParser.checkFields(settings.headers, "purge.hooks.\(name).headers")
        self.init(
            name: name, url: url, method: settings.method.rawValue, fields: settings.headers, body: settings.body,
            scopes: PurgeNotice.Scope.allCases.filter { scope in settings.scopes.contains { $0.rawValue == scope.rawValue } })
    }
}

extension RenditionPresets {
    /// - Throws: ``SettingsError`` for the first preset that cannot be used.
    init(_ presets: [String: [OptionPair]]) throws(SettingsError) {
        self.init()
        for (name, pairs) in presets.sorted(by: { $0.key < $1.key }) {
            guard name.utf8.allSatisfy(Route.isNameByte) else {
                throw SettingsError("presets.\(name) cannot be used: a preset's name consists of a-z, 0-9, - and _.")
            }
            do throws(RenditionPresets.Invalid) {
                try add(name, pairs.map { RenditionPresets.Option(name: $0.name, value: $0.value) })
            } catch {
                let reason =
                    switch error {
                    case .builtInName: "“\(name)” is a built-in preset; choose another name."
                    case .option(let error): Problem(error).detail
                    }
                throw SettingsError("presets.\(name) cannot be used: \(reason)")
            }
        }
    }
}

extension RateLimit {
    /// - Parameter perMinute: 0 for no limit.
    init?(_ perMinute: Int, burst: Int) {
        guard perMinute > 0 else { return nil }
        self.init(perMinute: perMinute, burst: burst)
    }
}

/// Reads texts of the settings whose form another target defines.
enum SettingParser {
    /// Reads a URL without a query.
    ///
    /// - Parameter expectation: Completes the sentence “it must be …”.
    static func url(
        _ text: String, _ name: String, _ expectation: String = "an http or https URL"
    ) throws(SettingsError) -> SourceURL {
        let url = try translating(try SourceURL(text)) { (_: SourceURLError) in
            SettingsError.wrongValue(name, text, expectation)
        }
        guard url.query == nil else { throw .wrongValue(name, text, "a URL without a query") }
        guard !isList(text) else { throw .wrongValue(name, text, "one URL") }
        return url
    }

    /// Whether the text is a list of URLs, which would otherwise be a single URL with a strange path.
    private static func isList(_ text: String) -> Bool {
        text.split { $0.isWhitespace || ",;".contains($0) }.dropFirst().contains { (try? SourceURL(String($0))) != nil }
    }

    /// Checks a URL that may have a query, a user or placeholders.
    static func checkAddress(_ text: String, _ name: String) throws(SettingsError) {
        let scheme = ["http://", "https://"].first(where: text.lowercased().hasPrefix)
        let host = scheme.map { text.dropFirst($0.count).prefix { !"/?#".contains($0) } } ?? ""
        guard !host.isEmpty, !text.contains(where: \.isWhitespace), !isList(text) else {
            throw .wrongValue(name, text, "an http or https URL")
        }
    }

    /// Checks an origin of pages. Browsers compare its text, so a list, a path, capital letters or a default port permit none.
    static func checkOrigin(_ text: String, _ name: String) throws(SettingsError) {
        let host = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? ""
        let isOrigin = !host.isEmpty && !host.contains { $0.isWhitespace || "/,*@?#".contains($0) }
        // Other schemes are those of applications.
        let isWeb = ["http", "https"].contains(text.prefix { $0 != ":" }.lowercased())
        let canonical = isWeb ? (try? SourceURL(text))?.canonical : "\(text)/"
        guard ["*", "null"].contains(text) || isOrigin && canonical == "\(text)/" else {
            throw .wrongValue(name, text, "* or one origin as browsers write it, such as https://example.com")
        }
    }

    /// Checks fields of requests, which are secrets: an error names a field by its number only.
    static func checkFields(_ fields: [String], _ name: String) throws(SettingsError) {
        guard let wrong = fields.firstIndex(where: { !RequestField.isValid($0) }) else { return }
        throw SettingsError(
            "\(name): number \(wrong + 1) of \(fields.count), separated by commas, is not a field “Name: value” that may be set. "
                + "A value cannot contain a comma.")
    }
}

extension S3Bucket {
    /// The bucket of the shared store.
    init(_ settings: Settings.Store.S3, name: String) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(url: settings.endpoint, region: settings.region, usesPathStyle: settings.pathStyle)
        try self.init(endpoint: endpoint, name: name, keys: try S3Keys(settings))
    }

    /// The bucket of a mount. Keys are sent only to the service for which they are configured.
    init(
        _ settings: Settings.Mount.S3, _ store: Settings.Store.S3, name: String
    ) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(
            url: settings.endpoint ?? store.endpoint, region: settings.region ?? store.region,
            usesPathStyle: settings.pathStyle ?? store.pathStyle)
        var keys = S3Keys.none
        if let access = settings.accessKey, let secret = settings.secretKey {
            keys = .fixed(try S3Credentials(accessKey: access, secretKey: secret))
        } else if settings.accessKey != nil || settings.secretKey != nil {
            throw StoreConfigurationError("s3", "must have both access_key and secret_key, or none of them")
        } else if settings.endpoint == nil {
            keys = try S3Keys(store)
        }
        try self.init(endpoint: endpoint, name: name, keys: keys)
    }
}

extension S3Keys {
    /// The keys of the shared store: from its settings, from the environment, or a role's.
    fileprivate init(_ settings: Settings.Store.S3) throws(StoreConfigurationError) {
        let environment = ProcessInfo.processInfo.environment.filter { !$0.value.isEmpty }
        let (access, secret) = (environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"])
        if let access = settings.accessKey, let secret = settings.secretKey {
            self = .fixed(try S3Credentials(accessKey: access, secretKey: secret))
        } else if settings.accessKey != nil || settings.secretKey != nil {
            // Otherwise, requests would be unsigned, or signed with other keys.
            throw StoreConfigurationError(
                settings.accessKey == nil ? "secret_key" : "access_key",
                "must be set together with the other key, or not at all")
        } else if let access, let secret {
            self = .fixed(
                try S3Credentials(accessKey: access, secretKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"]))
        } else if access != nil || secret != nil {
            throw StoreConfigurationError(
                "access_key",
                "is not set, and of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is: set both or none")
        } else {
            self = .role(.ofProcess)
        }
    }
}

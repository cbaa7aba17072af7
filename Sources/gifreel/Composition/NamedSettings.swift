internal import Fetch
internal import Foundation
internal import Media
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
            try SettingParser.checkName(name, "signing.keys.\(name)", "a key's name")
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
        try SettingParser.checkName(name, "purge.hooks.\(name)", "a hook's name")
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
            try SettingParser.checkName(name, "presets.\(name)", "a preset's name")
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
    /// Checks a name that the user has chosen.
    static func checkName(_ name: String, _ setting: String, _ subject: String) throws(SettingsError) {
        guard name.utf8.allSatisfy(Route.isNameByte) else {
            throw SettingsError("\(setting) cannot be used: \(subject) consists of a-z, 0-9, - and _.")
        }
    }

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

/// The mounts of the settings, and what their origins add to the configuration of other targets.
struct ConfiguredMounts {
    /// By name.
    private(set) var mounts: [String: Mount] = [:]
    /// The buckets of `s3://` origins, by name.
    private var buckets: [String: BucketAccess] = [:]
    /// Seconds for which sources are fresh, by the beginning of their URLs.
    private(set) var freshFor: [String: Int64] = [:]
    private let store: Settings.Store.S3

    /// - Parameter store: The settings of the shared store. A bucket without a service or keys of its own uses these.
    /// - Throws: ``SettingsError`` for the first mount that cannot be used.
    init(_ settings: [String: Settings.Mount], store: Settings.Store.S3) throws(SettingsError) {
        self.store = store
        for (name, mount) in settings.sorted(by: { $0.key < $1.key }) { try add(mount, named: name) }
    }

    private mutating func add(_ settings: Settings.Mount, named name: String) throws(SettingsError) {
        guard !Route.reservedNames.contains(name) else {
            throw SettingsError("mounts.\(name) cannot be used: /\(name) is a route of the server; choose another name.")
        }
        try SettingParser.checkName(name, "mounts.\(name)", "a mount's name")
        let origin = try origin(of: settings, "mounts.\(name)")
        if let wrong = settings.allow.first(where: { !MountRule.isPath($0) }) {
            throw .wrongValue("mounts.\(name).allow", wrong, "a path below the origin, such as avatars/")
        }
        var mount = Mount(origin: origin, allow: settings.allow)
        mount.freshFor = settings.freshFor?.components.seconds
        // Examining a file costs next to nothing.
        if case .file = origin { mount.freshFor = mount.freshFor ?? Self.freshForOfFiles }
        mount.maxAge = settings.maxAge.map { Int($0.components.seconds) }
        mount.sources = SourceFormat.allCases.filter(settings.sources.contains)
        guard !mount.sources.isEmpty else {
            throw SettingsError("mounts.\(name).sources is empty; it must name gif, apng, webp, avif, mp4, mov or webm.")
        }
        mount.negotiates = settings.negotiate
        // No visitor waits for an encoder unless the settings say so.
        let followsSource = settings.onMiss.map { $0 == .original } ?? mount.negotiates
        mount.onMiss = followsSource ? .original : .wait
        mount.onError = settings.onError == .original ? .original : .problem
        guard mount.negotiates || mount.onMiss == .wait else {
            throw SettingsError("mounts.\(name).on_miss: original has an effect only with mounts.\(name).negotiate: true.")
        }
        mount.query = settings.query == .forward ? .forward : .options
        mount.rule.requiresSignature = settings.requireSignature
        try checkFields(settings, of: mount.rule, named: name)
        mount.rule.fields = settings.headers
        mounts[name] = mount
        if let seconds = mount.freshFor { freshFor[mount.rule.base] = seconds }
    }

    /// Adds the sources of the mounts, and how they are fetched.
    func add(to fetch: inout FetchConfiguration) {
        fetch.mounts = mounts.values.map(\.rule)
        fetch.buckets = buckets
    }

    private func checkFields(_ settings: Settings.Mount, of rule: MountRule, named name: String) throws(SettingsError) {
        try SettingParser.checkFields(settings.headers, "mounts.\(name).headers")
        guard settings.headers.isEmpty || !rule.root.isOfMount else {
            throw SettingsError("mounts.\(name).headers is set, but only requests to http and https origins can have fields.")
        }
        for (other, known) in mounts.mapValues(\.rule) where rule.overlaps(known) {
            guard known.fields == settings.headers && (known.fields.isEmpty || known.base == rule.base) else {
                throw SettingsError("mounts.\(name) and mounts.\(other) have overlapping origins but different headers.")
            }
        }
    }

    /// Seconds for which a source of a `file://` origin is fresh, unless the settings say otherwise.
    private static let freshForOfFiles: Int64 = 10

    private static func directory(
        of settings: Settings.Mount, _ origin: String, _ name: String
    ) throws(SettingsError) -> SourceURL {
        guard settings.query == .options else {
            throw SettingsError("\(name).query is forward, but files have no query.")
        }
        // The path in the settings is not percent-encoded.
        let path = String(origin.dropFirst(SourceURL.fileScheme.count))
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        let isDirectory =
            path.hasPrefix("/") && path.utf8.count > 1
            && (parts.last == "" ? parts.dropLast() : parts).allSatisfy { !["", ".", ".."].contains($0) }
        guard isDirectory, let directory = try? SourceURL(directory: path.hasSuffix("/") ? path : path + "/") else {
            throw SettingsError(
                "\(name).origin is “\(origin)”; it must be an absolute path without empty parts and dots, such as file:///srv/gifs."
            )
        }
        return directory
    }

    /// The origin of a mount. Adds the bucket of an `s3://` origin to ``buckets``.
    private mutating func origin(of settings: Settings.Mount, _ name: String) throws(SettingsError) -> SourceURL {
        let origin = settings.origin ?? ""
        guard origin.lowercased().hasPrefix(SourceURL.s3Scheme) else {
            guard settings.s3 == Settings.Mount.S3() else {
                throw SettingsError("\(name).s3 is set, but \(name).origin does not begin with s3://.")
            }
            if origin.lowercased().hasPrefix(SourceURL.fileScheme) { return try Self.directory(of: settings, origin, name) }
            let forms = "an http or https URL, s3://bucket/prefix or file:///directory"
            return try SettingParser.url(origin, "\(name).origin", forms)
        }
        guard settings.query == .options else {
            throw SettingsError("\(name).query is forward, but requests to S3 are signed without a query.")
        }
        let wrong = { @Sendable (error: StoreConfigurationError) in SettingsError("\(name): \(error)") }
        let location = try translating(try S3Location(origin), to: wrong)
        let bucket = try translating(try S3Bucket(settings.s3, store, name: location.bucket), to: wrong)
        let root = bucket.url
        let access = BucketAccess(root: root, signer: bucket.signer)
        // The prefix in the settings is not percent-encoded.
        let url = "\(SourceURL.s3Scheme)\(bucket.name)/\(PercentEncoding.encode(location.key, keepsSlashes: true))"
        let folder = try translating(try SourceURL(bucketFolder: url, of: bucket.name, at: root)) { (_: SourceURLError) in
            SettingsError(
                "\(name).origin is “\(origin)”, whose bucket has no valid URL (\(root)); set \(name).s3.path_style.")
        }
        // The URL of a source names the bucket and not the service.
        if let known = buckets[bucket.name], known != access {
            throw SettingsError("\(name): another mount reaches a bucket \(bucket.name) elsewhere or with other keys.")
        }
        buckets[bucket.name] = access
        return folder
    }
}

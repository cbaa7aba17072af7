internal import Fetch
internal import Media
internal import Settings
internal import Store
internal import SystemIO
internal import Web

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
        guard name.utf8.allSatisfy(Route.isNameByte) else {
            throw SettingsError("mounts.\(name) cannot be used: a mount's name consists of a-z, 0-9, - and _.")
        }
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

    /// Checks the fields of requests to the origin of a mount.
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

    /// The directory of a `file://` origin.
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

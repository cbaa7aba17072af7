internal import Fetch
internal import Media
internal import Settings
internal import SharedStore
internal import SystemIO
internal import Web

/// The mounts of the settings, and what their origins add to the configuration of other targets.
struct ConfiguredMounts {
    /// By name.
    private(set) var mounts: [String: Mount] = [:]
    /// The sources that may be fetched through a mount, without being in `sources.allow`.
    private var patterns: [SourcePattern] = []
    /// The fields of requests to origins.
    private var originFields: [OriginFields] = []
    /// The buckets of `s3://` origins, by name.
    private var buckets: [String: BucketAccess] = [:]
    /// The directories of `file://` origins, which end with a slash.
    private var directories: Set<String> = []
    /// Seconds for which sources are fresh, by the beginning of their URLs.
    private(set) var freshFor: [String: Int64] = [:]
    private let store: Settings.Store.S3

    /// - Parameter store: The settings of the shared store. A bucket without a service or keys of its own has those.
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
        var mount = try mountOrigin(of: settings, "mounts.\(name)")
        if let wrong = settings.allow.first(where: { $0.hasPrefix("/") || mount.pattern($0) == nil }) {
            throw .wrongValue("mounts.\(name).allow", wrong, "a path below the origin, such as avatars/")
        }
        mount.allow = settings.allow
        // Looking at a file costs next to nothing.
        mount.freshFor = settings.freshFor?.components.seconds ?? (mount.directory == nil ? nil : Self.freshForOfFiles)
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
        mount.requiresSignature = settings.requireSignature
        try addFields(settings, of: &mount, named: name)
        mounts[name] = mount
        if let directory = mount.directory {
            directories.insert(directory)
        } else {
            patterns += mount.patterns
        }
        if let seconds = mount.freshFor { freshFor[mount.base] = seconds }
    }

    /// Adds the sources of the mounts, and how they are fetched.
    func add(to fetch: inout FetchConfiguration) {
        fetch.allow += patterns
        fetch.originFields = originFields
        fetch.signedSources = mounts.values.flatMap(\.signedSources)
        fetch.buckets = buckets
        fetch.directories = directories
    }

    /// Adds the fields of requests to the origin of a mount.
    private mutating func addFields(_ settings: Settings.Mount, of mount: inout Mount, named name: String)
        throws(SettingsError)
    {
        if let wrong = settings.headers.first(where: { !OriginFields.isField($0) }) {
            let field = wrong.prefix { $0 != ":" }
            throw SettingsError("mounts.\(name).headers: “\(field)” is not a field “Name: value” that may be set.")
        }
        guard settings.headers.isEmpty || !mount.origin.isOfMount else {
            throw SettingsError("mounts.\(name).headers is set, but only requests to http and https origins can have fields.")
        }
        let base = mount.base
        for (other, known) in mounts where known.base.hasPrefix(base) || base.hasPrefix(known.base) {
            let fields = originFields.first { $0.base == known.base }?.fields ?? []
            guard fields == settings.headers && (fields.isEmpty || known.base == base) else {
                throw SettingsError("mounts.\(name) and mounts.\(other) have overlapping origins but different headers.")
            }
        }
        guard !settings.headers.isEmpty else { return }
        mount.isPrivate = true
        if !originFields.contains(where: { $0.base == base }) {
            originFields.append(OriginFields(base: base, fields: settings.headers))
        }
    }

    /// Seconds for which a source of a `file://` origin is fresh, unless the settings say otherwise.
    private static let freshForOfFiles: Int64 = 10

    /// The mount of a `file://` origin.
    private static func mount(ofFiles settings: Settings.Mount, _ origin: String, _ name: String) throws(SettingsError) -> Mount
    {
        guard settings.query == .options else {
            throw SettingsError("\(name).query is forward, but files have no query.")
        }
        // The path is written as it is, and not encoded.
        let path = String(origin.dropFirst(SourceURL.fileScheme.count))
        let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
        let isDirectory =
            path.hasPrefix("/") && path.utf8.count > 1
            && (parts.last == "" ? parts.dropLast() : parts).allSatisfy { !["", ".", ".."].contains($0) }
        guard isDirectory, let mount = try? Mount(directory: path.hasSuffix("/") ? path : path + "/") else {
            throw SettingsError(
                "\(name).origin is “\(origin)”; it must be an absolute path without empty parts and dots, such as file:///srv/gifs."
            )
        }
        return mount
    }

    /// The mount of an origin. Adds the bucket of an `s3://` origin to ``buckets``.
    private mutating func mountOrigin(of settings: Settings.Mount, _ name: String) throws(SettingsError) -> Mount {
        let origin = settings.origin ?? ""
        guard origin.lowercased().hasPrefix(SourceURL.s3Scheme) else {
            guard settings.s3 == Settings.Mount.S3() else {
                throw SettingsError("\(name).s3 is set, but \(name).origin does not begin with s3://.")
            }
            if origin.lowercased().hasPrefix(SourceURL.fileScheme) { return try Self.mount(ofFiles: settings, origin, name) }
            let forms = "an http or https URL, s3://bucket/prefix or file:///directory"
            return Mount(origin: try SettingParser.url(origin, "\(name).origin", forms))
        }
        guard settings.query == .options else {
            throw SettingsError("\(name).query is forward, but requests to S3 are signed without a query.")
        }
        let bucket: S3Bucket
        let key: String
        do throws(StoreConfigurationError) {
            let location = try S3Location(origin)
            bucket = try S3Bucket(settings.s3, store, name: location.bucket)
            key = location.key
        } catch {
            throw SettingsError("\(name): \(error)")
        }
        let root = bucket.url
        let access = BucketAccess(root: root, signer: bucket.signer)
        let mount: Mount
        do throws(SourceURLError) {
            // The prefix is written as it is, and not encoded.
            mount = try Mount(
                s3: "\(SourceURL.s3Scheme)\(bucket.name)/\(PercentEncoding.encode(key, keepsSlashes: true))",
                bucket: bucket.name, at: SourceURL(root))
        } catch {
            throw SettingsError(
                "\(name).origin is “\(origin)”, whose bucket has no valid URL (\(root)); set \(name).s3.path_style.")
        }
        // The URL of a source names the bucket and not the service.
        if let known = buckets[bucket.name], known != access {
            throw SettingsError("\(name): another mount reaches a bucket \(bucket.name) elsewhere or with other keys.")
        }
        buckets[bucket.name] = access
        return mount
    }
}

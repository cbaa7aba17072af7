internal import Cache
internal import Cluster
internal import Fetch
internal import Foundation
internal import HTTP
internal import Logging
internal import Media
internal import Prewarm
internal import Renditions
internal import Sandbox
package import Settings
internal import SharedStore
internal import SystemIO
internal import Web

extension ServiceConfiguration {
    /// Maps the settings to the configuration of each target.
    ///
    /// - Throws: ``SettingsError`` for the first pattern, address, URL or name that is wrong, or for a configuration that a
    ///   target refuses.
    package init(_ settings: Settings) throws(SettingsError) {
        self.init()
        try mapServer(settings)
        mapCache(settings.cache)
        try mapSources(settings.sources)
        mapTranscoding(settings.transcode, settings.limits)
        requiresSandbox = settings.sandbox.require
        signingKeys = try SigningKeys(settings.signing)
        defaults.presets = try RenditionPresets(settings.presets)
        purgeHooks = try settings.purge.hooks.sorted { $0.key < $1.key }.map { name, hook throws(SettingsError) in
            try PurgeHook(hook, named: name)
        }
        options = settings.options.allow == .presets ? .presets : .any
        requiresSignature = settings.sources.requireSignature ?? !signingKeys.isEmpty
        mapLimits(settings.rateLimit)
        for (name, mount) in settings.mounts.sorted(by: { $0.key < $1.key }) { try map(mount, named: name, settings.store.s3) }
        try mapStore(settings.store.s3)
        try mapCluster(settings.cluster)
        hasHomePage = settings.pages.home
        maxStatuses = settings.async.maxStatuses
        webhooks = Webhooks.Policy(
            allow: try Self.items(settings.webhooks.allow, "webhooks.allow", "a pattern such as hooks.example.com/gifs/") {
                SourcePattern($0)
            },
            key: settings.webhooks.key)
        try mapRenditions(settings.renditions)
        adminToken = settings.admin.token
        prewarm.concurrency = settings.prewarm.concurrency ?? max(1, pool.workers / 2)
        prewarm.urls = settings.prewarm.maxURLs
        guard let readers = ClientList(settings.metrics.allow) else {
            let text = settings.metrics.allow.joined(separator: ",")
            throw .wrongValue("metrics.allow", text, "a list of addresses, networks or unix")
        }
        metricsReaders = readers
        tracing = try TracingConfiguration(settings.tracing, node: cluster?.node ?? settings.cluster.node ?? NodeName.current)
        logLevel = Logger.Level(rawValue: settings.log.level.rawValue) ?? .info
        logFormat = settings.log.format
        http.recordsClientFields = settings.log.client
        try validate()
    }

    private mutating func mapServer(_ settings: Settings) throws(SettingsError) {
        let server = settings.server
        http.host = server.host ?? ""
        http.port = server.port
        http.unixPath = server.unixPath
        http.unixMode = server.unixMode.flatMap { UInt32($0, radix: 8) }
        http.unixGroup = server.unixGroup
        http.threads = server.threads ?? http.threads
        http.maxConnections = server.maxConnections
        http.headTimeout = server.headTimeout
        http.bodyTimeout = server.bodyTimeout
        http.idleTimeout = server.idleTimeout
        http.drainTimeout = server.drainTimeout
        http.trustedProxies = server.trustedProxies
        http.forwardedField = server.forwardedField == .forwarded ? .forwarded : .xForwardedFor
        // The limit of the engine lives as long as the server. It is that of the largest value of sources.max_bytes, which
        // each upload checks, so that a reload can raise it.
        http.maxBodyBytes = 2 << 30 + FormSink.overhead
        shutdownDelay = server.shutdownDelay
        portFile = server.portFile
        allowOrigin = server.allowOrigin
        if let text = server.publicURL {
            let canonical = try Self.url(text, "server.public_url").canonical
            publicURL = canonical.hasSuffix("/") ? String(canonical.dropLast()) : canonical
        }
    }

    private mutating func mapCache(_ settings: Settings.Cache) {
        cache.directory = settings.dir
        cache.maxBytes = Int64(settings.maxBytes.bytes)
        cache.minFreeBytes = Int64(settings.minFreeBytes.bytes)
        cache.freshFor = settings.freshFor.components.seconds
        cache.staleFor = settings.staleFor.components.seconds
        originRules = OriginRules(
            isObeyed: settings.obeyOrigin, shortest: settings.minFreshFor.components.seconds,
            longest: settings.maxFreshFor.components.seconds)
        originRules.defaultLifetime = cache.freshFor
        maxAge = Int(settings.maxAge.components.seconds)
        cdnMaxAge = settings.cdnMaxAge.map { Int($0.components.seconds) }
    }

    private mutating func mapSources(_ settings: Settings.Sources) throws(SettingsError) {
        fetch.allow = try Self.items(settings.allow, "sources.allow", "a pattern such as *.example.com/media/") {
            SourcePattern($0)
        }
        fetch.allowPrivate = try Self.items(settings.allowPrivate, "sources.allow_private", "an address, network or host") {
            AddressException($0)
        }
        fetch.translationPrefixes = try Self.items(
            settings.nat64Prefixes, "sources.nat64_prefixes", "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits"
        ) { TranslationPrefix($0) }
        fetch.ports = PortSet(settings.ports.map(\.ports))
        fetch.maxBytes = settings.maxBytes.bytes
        fetch.connectTimeout = settings.connectTimeout
        fetch.timeout = settings.timeout
        fetch.maxRedirects = settings.maxRedirects
        fetch.concurrency = settings.concurrency
        fetch.loopName = settings.loopName
        fetch.userAgent = "gifreel/\(Gifreel.version)"
    }

    private mutating func mapTranscoding(_ settings: Settings.Transcode, _ limits: Settings.Limits) {
        let processors = HTTPServerConfiguration().threads
        pool.threadsAlone = processors
        pool.workers = settings.workers ?? processors
        pool.queue = settings.queue
        queueTimeout = settings.queueTimeout
        queueBytes = settings.queueBytes.bytes
        self.limits.side = limits.side
        self.limits.canvasPixels = limits.canvasPixels
        self.limits.totalPixels = limits.totalPixels
        self.limits.pixelsPerByte = limits.pixelsPerByte
        self.limits.frames = limits.frames
        self.limits.duration = Int(limits.duration / .milliseconds(10))
        allowance = WorkerJob.Allowance(cpu: Int(limits.cpu.components.seconds), memory: limits.memory.bytes)
    }

    private mutating func mapLimits(_ settings: Settings.RateLimit) {
        rateLimit = Self.limit(settings.missesPerMinute, settings.burst)
        uploadLimit = Self.limit(settings.uploadsPerMinute, settings.uploadBurst)
        byteLimit = settings.bytesPerMinute.map { RateLimit(perMinute: $0.bytes, burst: $0.bytes) }
    }

    /// - Parameter perMinute: 0 for no limit.
    fileprivate static func limit(_ perMinute: Int, _ burst: Int) -> RateLimit? {
        perMinute > 0 ? RateLimit(perMinute: perMinute, burst: burst) : nil
    }

    private mutating func mapRenditions(_ settings: Settings.Renditions) throws(SettingsError) {
        defaults.undither = settings.undither == .auto
        producesAV1InBackground = settings.av1 == .background
        guard !producesAV1InBackground || LinkedLibraries.has(.av1) else {
            throw SettingsError(
                "renditions.av1 is background, but this libavcodec has no encoder for AV1; set it to on_request.")
        }
    }

    private mutating func mapStore(_ settings: Settings.Store.S3) throws(SettingsError) {
        guard let bucket = settings.bucket else { return }
        do throws(StoreConfigurationError) {
            var store = SharedStoreConfiguration(bucket: try S3Bucket(settings, name: bucket))
            store.prefix = settings.prefix ?? ""
            store.timeout = settings.timeout
            store.lookupTimeout = settings.lookupTimeout
            var queue = WriteBehindConfiguration(directory: cache.directory + "/store-queue")
            queue.maxBytes = settings.queueBytes.bytes
            store.queue = queue
            try store.validate()
            self.store = store
        } catch {
            throw SettingsError("store.s3.\(error)")
        }
    }

    private mutating func mapCluster(_ settings: Settings.Cluster) throws(SettingsError) {
        guard let redis = settings.redis else { return }
        do throws(ClusterConfiguration.Invalid) {
            cluster = try ClusterConfiguration(
                address: redis, name: settings.name, node: settings.node, purgeFile: cache.directory + "/cluster")
        } catch {
            throw SettingsError("cluster.\(error.setting): \(error)")
        }
    }

    private mutating func map(
        _ settings: Settings.Mount, named name: String, _ store: Settings.Store.S3
    ) throws(SettingsError) {
        guard !Route.reservedNames.contains(name) else {
            throw SettingsError("mounts.\(name) cannot be used: /\(name) is a route of the server; choose another name.")
        }
        guard name.utf8.allSatisfy(Route.isNameByte) else {
            throw SettingsError("mounts.\(name) cannot be used: a mount's name consists of a-z, 0-9, - and _.")
        }
        var mount = try Self.mount(settings, "mounts.\(name)", store, &fetch.buckets)
        mount.allow = try Self.items(settings.allow, "mounts.\(name).allow", "a path below the origin, such as avatars/") {
            [mount] path in
            path.hasPrefix("/") || mount.pattern(path) == nil ? nil : path
        }
        mount.freshFor = settings.freshFor?.components.seconds
        mount.maxAge = settings.maxAge.map { Int($0.components.seconds) }
        mount.sources = SourceFormat.allCases.filter { format in
            settings.sources.contains { $0.rawValue == format.name }
        }
        guard !mount.sources.isEmpty else {
            throw SettingsError("mounts.\(name).sources is empty; it must name gif, apng or webp.")
        }
        mount.negotiates = settings.negotiate
        mount.onMiss = settings.onMiss == .original ? .original : .wait
        mount.onError = settings.onError == .original ? .original : .problem
        guard mount.negotiates || mount.onMiss == .wait else {
            throw SettingsError("mounts.\(name).on_miss: original has an effect only with mounts.\(name).negotiate: true.")
        }
        mount.query = settings.query == .forward ? .forward : .options
        mount.requiresSignature = settings.requireSignature
        try mapHeaders(settings, of: &mount, named: name)
        mounts[name] = mount
        // The origin of a mount is allowed without sources.allow.
        fetch.allow += mount.patterns
        if let freshFor = mount.freshFor { originRules.freshFor[mount.base] = freshFor }
    }

    /// Maps the fields of requests to the origin of a mount.
    private mutating func mapHeaders(_ settings: Settings.Mount, of mount: inout Mount, named name: String)
        throws(SettingsError)
    {
        if let wrong = settings.headers.first(where: { !OriginFields.isField($0) }) {
            let field = wrong.prefix { $0 != ":" }
            throw SettingsError("mounts.\(name).headers: “\(field)” is not a field “Name: value” that may be set.")
        }
        guard settings.headers.isEmpty || mount.origin.bucket == nil else {
            throw SettingsError("mounts.\(name).headers is set, but requests to S3 are signed with keys.")
        }
        let base = mount.base
        for (other, known) in mounts where known.base.hasPrefix(base) || base.hasPrefix(known.base) {
            let fields = fetch.originFields.first { $0.base == known.base }?.fields ?? []
            guard fields == settings.headers && (fields.isEmpty || known.base == base) else {
                throw SettingsError("mounts.\(name) and mounts.\(other) have overlapping origins but different headers.")
            }
        }
        guard !settings.headers.isEmpty else { return }
        mount.isPrivate = true
        if !fetch.originFields.contains(where: { $0.base == base }) {
            fetch.originFields.append(OriginFields(base: base, fields: settings.headers))
        }
    }

    /// The mount of an origin. Adds the bucket of an `s3://` origin to `buckets`.
    private static func mount(
        _ settings: Settings.Mount, _ name: String, _ store: Settings.Store.S3, _ buckets: inout [String: BucketAccess]
    ) throws(SettingsError) -> Mount {
        let origin = settings.origin ?? ""
        guard origin.lowercased().hasPrefix(SourceURL.s3Scheme) else {
            guard settings.s3 == Settings.Mount.S3() else {
                throw SettingsError("\(name).s3 is set, but \(name).origin does not begin with s3://.")
            }
            return Mount(origin: try url(origin, "\(name).origin", "an http or https URL or s3://bucket/prefix"))
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
        let (root, signing) = bucket.source
        let access = BucketAccess(
            root: root, signing.signature.map { .init(scheme: $0.scheme, user: $0.user, password: $0.password) },
            fields: signing.fields)
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

    /// Lets each target check its configuration.
    private func validate() throws(SettingsError) {
        do {
            try http.validate()
            try cache.validate()
        } catch {
            throw SettingsError("\(error)")
        }
        do throws(FetchConfigurationError) {
            try fetch.validate()
        } catch {
            throw SettingsError("sources.\(error)")
        }
    }

    private static func url(
        _ text: String, _ name: String, _ expectation: String = "an http or https URL"
    ) throws(SettingsError) -> SourceURL {
        let url: SourceURL
        do throws(SourceURLError) {
            url = try SourceURL(text)
        } catch {
            throw .wrongValue(name, text, expectation)
        }
        guard url.query == nil else { throw .wrongValue(name, text, "a URL without a query") }
        return url
    }

    fileprivate static func items<Item>(
        _ texts: [String], _ name: String, _ expectation: String, _ make: (String) -> Item?
    ) throws(SettingsError) -> [Item] {
        var items: [Item] = []
        for text in texts {
            guard let item = make(text) else { throw .wrongValue(name, text, expectation) }
            items.append(item)
        }
        return items
    }
}

extension SigningKeys {
    /// - Throws: ``SettingsError`` for the first key that cannot be used.
    init(_ settings: Settings.Signing) throws(SettingsError) {
        var named: [SigningKey] = []
        for (name, key) in settings.named.sorted(by: { $0.key < $1.key }) {
            guard name.utf8.allSatisfy(Route.isNameByte) else {
                throw SettingsError("signing.keys.\(name) cannot be used: a key's name consists of a-z, 0-9, - and _.")
            }
            let sources = try ServiceConfiguration.items(
                key.hosts, "signing.keys.\(name).hosts", "a pattern such as *.example.com/media/"
            ) { SourcePattern($0) }
            named.append(
                SigningKey(
                    secret: key.secret ?? "", name: name, sources: sources,
                    rate: ServiceConfiguration.limit(key.missesPerMinute, key.burst)))
        }
        self.init(settings.keys, named: named)
    }
}

extension PurgeHook {
    /// - Throws: ``SettingsError`` if the hook cannot be called.
    init(_ settings: Settings.Purge.Hook, named name: String) throws(SettingsError) {
        guard let url = settings.url, ["http://", "https://"].contains(where: url.lowercased().hasPrefix) else {
            throw .wrongValue("purge.hooks.\(name).url", settings.url ?? "", "an http or https URL")
        }
        if let wrong = settings.headers.first(where: { !OriginFields.isField($0) }) {
            let field = wrong.prefix { $0 != ":" }
            throw SettingsError("purge.hooks.\(name).headers: “\(field)” is not a field “Name: value” that may be set.")
        }
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

extension S3Bucket {
    /// The bucket of the shared store.
    fileprivate init(_ settings: Settings.Store.S3, name: String) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(url: settings.endpoint, region: settings.region, usesPathStyle: settings.pathStyle)
        try self.init(endpoint: endpoint, name: name, credentials: try S3Credentials(settings))
    }

    /// The bucket of a mount. Keys are sent to no service but that for which they are configured.
    fileprivate init(
        _ settings: Settings.Mount.S3, _ store: Settings.Store.S3, name: String
    ) throws(StoreConfigurationError) {
        let endpoint = try S3Endpoint(
            url: settings.endpoint ?? store.endpoint, region: settings.region ?? store.region,
            usesPathStyle: settings.pathStyle ?? store.pathStyle)
        var credentials: S3Credentials?
        if let access = settings.accessKey, let secret = settings.secretKey {
            credentials = try S3Credentials(accessKey: access, secretKey: secret)
        } else if settings.accessKey != nil || settings.secretKey != nil {
            throw StoreConfigurationError("s3", "must have both access_key and secret_key, or none of them")
        } else if settings.endpoint == nil {
            credentials = try S3Credentials(store)
        }
        try self.init(endpoint: endpoint, name: name, credentials: credentials)
    }
}

extension S3Credentials {
    /// The keys of the shared store, from its settings or else from the environment; nil without keys.
    fileprivate init?(_ settings: Settings.Store.S3) throws(StoreConfigurationError) {
        let environment = ProcessInfo.processInfo.environment
        if let access = settings.accessKey, let secret = settings.secretKey {
            try self.init(accessKey: access, secretKey: secret)
        } else if let access = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"] {
            try self.init(accessKey: access, secretKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"])
        } else {
            return nil
        }
    }
}

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
        signingKeys = SigningKeys(settings.signing.keys)
        requiresSignature = settings.sources.requireSignature ?? !signingKeys.isEmpty
        if settings.rateLimit.missesPerMinute > 0 {
            rateLimit = RateLimit(perMinute: settings.rateLimit.missesPerMinute, burst: settings.rateLimit.burst)
        }
        for (name, mount) in settings.mounts.sorted(by: { $0.key < $1.key }) { try map(mount, named: name) }
        try mapStore(settings.store.s3)
        try mapCluster(settings.cluster)
        hasHomePage = settings.pages.home
        adminToken = settings.admin.token
        prewarm.concurrency = settings.prewarm.concurrency ?? max(1, pool.workers / 2)
        prewarm.urls = settings.prewarm.maxURLs
        guard let readers = ClientList(settings.metrics.allow) else {
            let text = settings.metrics.allow.joined(separator: ",")
            throw .wrongValue("metrics.allow", text, "a list of addresses, networks or unix")
        }
        metricsReaders = readers
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
        maxAge = Int(settings.maxAge.components.seconds)
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

    private mutating func mapStore(_ settings: Settings.Store.S3) throws(SettingsError) {
        guard let bucket = settings.bucket else { return }
        let environment = ProcessInfo.processInfo.environment
        do throws(StoreConfigurationError) {
            var credentials: S3Credentials?
            if let access = settings.accessKey, let secret = settings.secretKey {
                credentials = try S3Credentials(accessKey: access, secretKey: secret)
            } else if let access = environment["AWS_ACCESS_KEY_ID"], let secret = environment["AWS_SECRET_ACCESS_KEY"] {
                credentials = try S3Credentials(
                    accessKey: access, secretKey: secret, sessionToken: environment["AWS_SESSION_TOKEN"])
            }
            let endpoint = try S3Endpoint(
                url: settings.endpoint, region: settings.region, usesPathStyle: settings.pathStyle)
            var store = SharedStoreConfiguration(
                bucket: try S3Bucket(endpoint: endpoint, name: bucket, credentials: credentials))
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

    private mutating func map(_ settings: Settings.Mount, named name: String) throws(SettingsError) {
        guard !Route.reservedNames.contains(name) else {
            throw SettingsError("mounts.\(name) cannot be used: /\(name) is a route of the server; choose another name.")
        }
        guard name.utf8.allSatisfy(Route.isNameByte) else {
            throw SettingsError("mounts.\(name) cannot be used: a mount's name consists of a-z, 0-9, - and _.")
        }
        var mount = Mount(origin: try Self.url(settings.origin ?? "", "mounts.\(name).origin"))
        let base = mount.base
        mount.allow = try Self.items(settings.allow, "mounts.\(name).allow", "a path below the origin, such as avatars/") {
            path in
            path.hasPrefix("/") || SourcePattern(base + path) == nil ? nil : path
        }
        mount.freshFor = settings.freshFor?.components.seconds
        mount.maxAge = settings.maxAge.map { Int($0.components.seconds) }
        mount.negotiates = settings.negotiate
        mount.query = settings.query == .forward ? .forward : .options
        mount.requiresSignature = settings.requireSignature
        mounts[name] = mount
        // The origin of a mount is allowed without sources.allow.
        fetch.allow += mount.patterns
        if let freshFor = mount.freshFor { originRules.freshFor[mount.base] = freshFor }
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

    private static func url(_ text: String, _ name: String) throws(SettingsError) -> SourceURL {
        let url: SourceURL
        do throws(SourceURLError) {
            url = try SourceURL(text)
        } catch {
            throw .wrongValue(name, text, "an http or https URL")
        }
        guard url.query == nil else { throw .wrongValue(name, text, "a URL without a query") }
        return url
    }

    private static func items<Item>(
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

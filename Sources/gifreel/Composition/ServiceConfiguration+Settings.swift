internal import Cache
internal import Cluster
internal import Fetch
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
        let configuredMounts = try ConfiguredMounts(settings.mounts, store: settings.store.s3)
        mounts = configuredMounts.mounts

        http = try Self.http(settings.server, settings.log)
        shutdownDelay = settings.server.shutdownDelay
        portFile = settings.server.portFile
        allowOrigin = settings.server.allowOrigin
        publicURL = try Self.publicURL(settings.server)
        hasHomePage = settings.pages.home

        cache = Self.cache(settings.cache)
        originRules = Self.originRules(settings.cache, configuredMounts)
        goneGrace = settings.cache.goneGrace
        maxAge = Int(settings.cache.maxAge.components.seconds)
        cdnMaxAge = settings.cache.cdnMaxAge.map { Int($0.components.seconds) }

        fetch = try Self.fetch(settings.sources, configuredMounts)
        limits = Self.mediaLimits(settings.limits, settings.sources)
        allowance = WorkerJob.Allowance(
            cpu: Int(settings.limits.cpu.components.seconds), memory: settings.limits.memory.bytes)
        let processors = HTTPServerConfiguration().threads
        pool = WorkerPoolConfiguration(
            workers: settings.transcode.workers ?? processors, queue: settings.transcode.queue, threadsAlone: processors)
        queueTimeout = settings.transcode.queueTimeout
        waitTimeout = settings.transcode.waitTimeout
        queueBytes = settings.transcode.queueBytes.bytes
        requiresSandbox = settings.sandbox.require

        signingKeys = try SigningKeys(settings.signing)
        requiresSignature = settings.sources.requireSignature ?? !signingKeys.isEmpty
        options = settings.options.allow == .presets ? .presets : .any
        defaults = RenditionDefaults()
        defaults.presets = try RenditionPresets(settings.presets)
        defaults.undither = settings.renditions.undither == .auto
        av1After = try Self.av1After(settings.renditions)
        rateLimit = RateLimit(settings.rateLimit.missesPerMinute, burst: settings.rateLimit.burst)
        uploadLimit = RateLimit(settings.rateLimit.uploadsPerMinute, burst: settings.rateLimit.uploadBurst)
        byteLimit = settings.rateLimit.bytesPerMinute.map { RateLimit(perMinute: $0.bytes, burst: $0.bytes) }

        store = try Self.store(settings.store.s3, cacheDirectory: cache.directory)
        storeDrainTimeout = settings.store.s3.drainTimeout
        cluster = try Self.cluster(settings.cluster)
        catchUpLimit = settings.cluster.catchUp

        adminToken = settings.admin.token
        maxStatuses = settings.async.maxStatuses
        prewarm = PrewarmQueue.Limits(
            concurrency: settings.prewarm.concurrency ?? max(1, pool.workers / 2), urls: settings.prewarm.maxURLs)
        purgeHooks = try settings.purge.hooks.sorted { $0.key < $1.key }.map { name, hook throws(SettingsError) in
            try PurgeHook(hook, named: name)
        }
        webhooks = Webhooks.Policy(
            allow: try SettingParser.list(
                settings.webhooks.allow, "webhooks.allow", "a pattern such as hooks.example.com/gifs/"
            ) { SourcePattern($0) },
            key: settings.webhooks.key)
        guard let readers = ClientList(settings.metrics.allow) else {
            let text = settings.metrics.allow.joined(separator: ",")
            throw .wrongValue("metrics.allow", text, "a list of addresses, networks or unix")
        }
        metricsReaders = readers
        tracing = try TracingConfiguration(settings.tracing, node: cluster?.node ?? settings.cluster.node ?? NodeName.current)
        logLevel = Logger.Level(rawValue: settings.log.level.rawValue) ?? .info
        logFormat = settings.log.format
        try validate()
    }

    private static func http(_ server: Settings.Server, _ log: Settings.Log) throws(SettingsError) -> HTTPServerConfiguration {
        var http = HTTPServerConfiguration()
        http.host = server.host ?? ""
        http.port = server.port
        http.unixPath = server.unixPath
        http.unixMode = server.unixMode.flatMap { UInt32($0, radix: 8) }
        http.unixGroup = server.unixGroup
        http.threads = server.threads ?? http.threads
        http.maxConnections = server.maxConnections
        http.maxConnectionsPerClient = server.maxConnectionsPerClient
        http.headTimeout = server.headTimeout
        http.bodyTimeout = server.bodyTimeout
        http.responseTimeout = server.responseTimeout
        http.idleTimeout = server.idleTimeout
        http.drainTimeout = server.drainTimeout
        http.trustedProxies = server.trustedProxies
        http.forwardedField = server.forwardedField == .forwarded ? .forwarded : .xForwardedFor
        // The limit of the engine lives as long as the server. It is that of the largest value of sources.max_bytes, which
        // each upload checks, so that a reload can raise it.
        http.maxBodyBytes = 2 << 30 + FormSink.overhead
        http.recordsClientFields = log.client
        return http
    }

    private static func publicURL(_ server: Settings.Server) throws(SettingsError) -> String? {
        guard let text = server.publicURL else { return nil }
        let canonical = try SettingParser.url(text, "server.public_url").canonical
        return canonical.hasSuffix("/") ? String(canonical.dropLast()) : canonical
    }

    private static func cache(_ settings: Settings.Cache) -> CacheConfiguration {
        var cache = CacheConfiguration()
        cache.directory = settings.dir
        cache.maxBytes = Int64(settings.maxBytes.bytes)
        cache.minFreeBytes = Int64(settings.minFreeBytes.bytes)
        cache.freshFor = settings.freshFor.components.seconds
        cache.staleFor = settings.staleFor.components.seconds
        return cache
    }

    private static func originRules(_ settings: Settings.Cache, _ mounts: ConfiguredMounts) -> OriginRules {
        var rules = OriginRules(
            isObeyed: settings.obeyOrigin, shortest: settings.minFreshFor.components.seconds,
            longest: settings.maxFreshFor.components.seconds)
        rules.defaultLifetime = settings.freshFor.components.seconds
        rules.freshFor = mounts.freshFor
        return rules
    }

    private static func fetch(
        _ settings: Settings.Sources, _ mounts: ConfiguredMounts
    ) throws(SettingsError) -> FetchConfiguration {
        var fetch = FetchConfiguration()
        fetch.allow = try SettingParser.list(settings.allow, "sources.allow", "a pattern such as *.example.com/media/") {
            SourcePattern($0)
        }
        fetch.allowPrivate = try SettingParser.list(
            settings.allowPrivate, "sources.allow_private", "an address, network or host"
        ) { AddressException($0) }
        fetch.translationPrefixes = try SettingParser.list(
            settings.nat64Prefixes, "sources.nat64_prefixes", "an IPv6 prefix of 32, 40, 48, 56, 64 or 96 bits"
        ) { TranslationPrefix($0) }
        fetch.ports = PortSet(settings.ports.map(\.ports))
        fetch.maxBytes = settings.maxBytes.bytes
        fetch.connectTimeout = settings.connectTimeout
        fetch.timeout = settings.timeout
        fetch.stallTimeout = settings.stallTimeout
        fetch.maxRedirects = settings.maxRedirects
        fetch.concurrency = settings.concurrency
        fetch.loopName = settings.loopName
        fetch.userAgent = "gifreel/\(Gifreel.version)"
        fetch.allow += mounts.patterns
        fetch.originFields = mounts.originFields
        fetch.signedSources = mounts.mounts.values.flatMap(\.signedSources)
        fetch.buckets = mounts.buckets
        fetch.directories = mounts.directories
        return fetch
    }

    private static func mediaLimits(_ settings: Settings.Limits, _ sources: Settings.Sources) -> MediaLimits {
        var limits = MediaLimits()
        limits.side = settings.side
        limits.canvasPixels = settings.canvasPixels
        limits.totalPixels = settings.totalPixels
        limits.pixelsPerByte = settings.pixelsPerByte
        limits.frames = settings.frames
        limits.duration = Int(settings.duration / .milliseconds(10))
        limits.clipDuration = Int(settings.clipDuration / .milliseconds(10))
        limits.formats = SourceFormats(
            SourceFormat.allCases.filter { format in sources.formats.contains { $0.rawValue == format.name } })
        return limits
    }

    private static func av1After(_ settings: Settings.Renditions) throws(SettingsError) -> Int? {
        guard settings.av1 == .background else { return nil }
        guard LinkedLibraries.has(.av1) else {
            throw SettingsError(
                "renditions.av1 is background, but this libavcodec has no encoder for AV1; set it to on_request.")
        }
        return settings.av1After
    }

    private static func store(
        _ settings: Settings.Store.S3, cacheDirectory: String
    ) throws(SettingsError) -> SharedStoreConfiguration? {
        guard let bucket = settings.bucket else { return nil }
        do throws(StoreConfigurationError) {
            var store = SharedStoreConfiguration(bucket: try S3Bucket(settings, name: bucket))
            store.prefix = settings.prefix ?? ""
            store.timeout = settings.timeout
            store.lookupTimeout = settings.lookupTimeout
            store.fileExtensions = Rendition.Format.allCases.map(\.rawValue) + [Rendition.Format.original.rawValue]
            store.outbox.directory = cacheDirectory + "/outbox"
            store.outbox.maxBytes = settings.queueBytes.bytes
            try store.validate()
            return store
        } catch {
            throw SettingsError("store.s3.\(error)")
        }
    }

    private static func cluster(_ settings: Settings.Cluster) throws(SettingsError) -> ClusterConfiguration? {
        guard let redis = settings.redis else { return nil }
        do throws(ClusterConfiguration.Invalid) {
            var cluster = try ClusterConfiguration(address: redis, name: settings.name, node: settings.node)
            cluster.aloneLimit = settings.alone
            return cluster
        } catch {
            throw SettingsError("cluster.\(error.setting): \(error)")
        }
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
}

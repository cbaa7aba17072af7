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
        try mapMounts(settings.mounts, settings.store.s3)
        try mapStore(settings.store.s3)
        try mapCluster(settings.cluster)
        hasHomePage = settings.pages.home
        maxStatuses = settings.async.maxStatuses
        webhooks = Webhooks.Policy(
            allow: try SettingParser.list(
                settings.webhooks.allow, "webhooks.allow", "a pattern such as hooks.example.com/gifs/"
            ) { SourcePattern($0) },
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
        shutdownDelay = server.shutdownDelay
        portFile = server.portFile
        allowOrigin = server.allowOrigin
        if let text = server.publicURL {
            let canonical = try SettingParser.url(text, "server.public_url").canonical
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
        goneGrace = settings.goneGrace
        maxAge = Int(settings.maxAge.components.seconds)
        cdnMaxAge = settings.cdnMaxAge.map { Int($0.components.seconds) }
    }

    private mutating func mapSources(_ settings: Settings.Sources) throws(SettingsError) {
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
        limits.formats = SourceFormats(
            SourceFormat.allCases.filter { format in settings.formats.contains { $0.rawValue == format.name } })
    }

    private mutating func mapTranscoding(_ settings: Settings.Transcode, _ limits: Settings.Limits) {
        let processors = HTTPServerConfiguration().threads
        pool.threadsAlone = processors
        pool.workers = settings.workers ?? processors
        pool.queue = settings.queue
        queueTimeout = settings.queueTimeout
        waitTimeout = settings.waitTimeout
        queueBytes = settings.queueBytes.bytes
        self.limits.side = limits.side
        self.limits.canvasPixels = limits.canvasPixels
        self.limits.totalPixels = limits.totalPixels
        self.limits.pixelsPerByte = limits.pixelsPerByte
        self.limits.frames = limits.frames
        self.limits.duration = Int(limits.duration / .milliseconds(10))
        self.limits.clipDuration = Int(limits.clipDuration / .milliseconds(10))
        allowance = WorkerJob.Allowance(cpu: Int(limits.cpu.components.seconds), memory: limits.memory.bytes)
    }

    private mutating func mapLimits(_ settings: Settings.RateLimit) {
        rateLimit = RateLimit(settings.missesPerMinute, burst: settings.burst)
        uploadLimit = RateLimit(settings.uploadsPerMinute, burst: settings.uploadBurst)
        byteLimit = settings.bytesPerMinute.map { RateLimit(perMinute: $0.bytes, burst: $0.bytes) }
    }

    private mutating func mapMounts(
        _ settings: [String: Settings.Mount], _ store: Settings.Store.S3
    ) throws(SettingsError) {
        let configured = try ConfiguredMounts(settings, store: store)
        mounts = configured.mounts
        fetch.allow += configured.patterns
        fetch.originFields = configured.originFields
        fetch.signedSources = configured.mounts.values.flatMap(\.signedSources)
        fetch.buckets = configured.buckets
        fetch.directories = configured.directories
        originRules.freshFor = configured.freshFor
    }

    private mutating func mapRenditions(_ settings: Settings.Renditions) throws(SettingsError) {
        defaults.undither = settings.undither == .auto
        av1After = settings.av1 == .background ? settings.av1After : nil
        guard av1After == nil || LinkedLibraries.has(.av1) else {
            throw SettingsError(
                "renditions.av1 is background, but this libavcodec has no encoder for AV1; set it to on_request.")
        }
    }

    private mutating func mapStore(_ settings: Settings.Store.S3) throws(SettingsError) {
        storeDrainTimeout = settings.drainTimeout
        guard let bucket = settings.bucket else { return }
        do throws(StoreConfigurationError) {
            var store = SharedStoreConfiguration(bucket: try S3Bucket(settings, name: bucket))
            store.prefix = settings.prefix ?? ""
            store.timeout = settings.timeout
            store.lookupTimeout = settings.lookupTimeout
            store.fileExtensions = Rendition.Format.allCases.map(\.rawValue) + [Rendition.Format.original.rawValue]
            store.outbox.directory = cache.directory + "/outbox"
            store.outbox.maxBytes = settings.queueBytes.bytes
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
                address: redis, name: settings.name, node: settings.node)
            cluster?.aloneLimit = settings.alone
            catchUpLimit = settings.catchUp
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

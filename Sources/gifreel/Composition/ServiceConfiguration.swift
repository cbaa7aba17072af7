package import Fetch
package import Fleet
package import HTTP
package import Logging
package import Media
package import Prewarm
package import Renditions
package import Sandbox
package import Settings
package import Store
internal import SystemIO
package import Web

/// The configuration of each target, composed from the settings.
package struct ServiceConfiguration: Sendable {
    /// The settings themselves, for values that no other target configures.
    package let settings: Settings
    package var http: HTTPServerConfiguration
    package var web: WebPolicy
    package var cache: CacheConfiguration
    package var fetch: FetchConfiguration
    package var pool: WorkerPoolConfiguration
    package var limits: MediaLimits
    package var allowance: WorkerAllowance
    /// The limits for `Cache-Control` and `Expires` of origins.
    package var originRules: OriginRules
    /// The options of renditions that requests leave out.
    package var defaults: RenditionDefaults
    /// The sources that are refused; nil for none.
    package var blocks: BlockList?
    package var webhooks: Webhooks.Policy
    /// Sentences about secrets that may be guessed, or that are those of several keys.
    package var secretWarnings: [String]
    /// Requests that notify CDNs of purges.
    package var purgeHooks: [PurgeHook]
    /// The limits of prewarm jobs.
    package var prewarm: PrewarmQueue.Limits
    /// The shared store; nil without one.
    package var store: SharedStoreConfiguration?
    /// The part of this node in a cluster; nil if it works alone.
    package var cluster: ClusterConfiguration?
    package var logLevel: Logger.Level
}

extension ServiceConfiguration {
    /// Composes the configuration of each target from the settings.
    ///
    /// - Throws: ``SettingsError`` for the first URL, key or name that cannot be used, or for an encoder that is missing.
    package init(_ settings: Settings) throws(SettingsError) {
        let mounts = try ConfiguredMounts(settings.mounts, store: settings.store.s3)

        self.settings = settings
        http = settings.http
        // The limit of the engine lives as long as the server. It allows the largest value of sources.max_bytes, so that a
        // reload can raise that setting, which each upload checks.
        http.maxBodyBytes = 2 << 30 + FormSink.overhead

        cache = settings.cache
        originRules = settings.originRules
        originRules.defaultLifetime = cache.freshFor
        originRules.freshFor = mounts.freshFor

        fetch = settings.fetch
        fetch.userAgent = fetch.userAgent ?? "gifreel/\(Gifreel.version)"
        mounts.add(to: &fetch)
        limits = settings.limits
        let formats = settings.limits.formats
        fetch.formats = SourceFormat.allCases.filter { formats.contains($0) }.map { format in
            // Origins use either media type for animated PNGs.
            AcceptedFormat(
                mediaTypes: (format == .apng ? ["image/apng"] : []) + [format.mediaType], fileExtensions: format.fileExtensions)
        }
        allowance = WorkerAllowance(cpu: settings.allowance.cpu, memory: settings.allowance.memory)
        let processors = Processors.available
        pool = WorkerPoolConfiguration(
            workers: settings.transcode.workers ?? processors, queue: settings.transcode.queue, threadsAlone: processors)

        defaults = RenditionDefaults()
        defaults.presets = try RenditionPresets(settings.presets)
        defaults.undithers = settings.renditions.undither == .auto
        blocks = try settings.blockList.map { path throws(SettingsError) in try BlockList(file: path) }
        web = try WebPolicy(settings, fetch, mounts.mounts, defaults.presets)

        store = try Self.store(settings.store.s3, cacheDirectory: cache.directory)
        cluster = try Self.cluster(settings.cluster)
        prewarm = PrewarmQueue.Limits(
            concurrency: settings.prewarm.concurrency ?? max(1, pool.workers / 2), urls: settings.prewarm.maxURLs)
        purgeHooks = try settings.purge.hooks.sorted { $0.key < $1.key }.map { name, hook throws(SettingsError) in
            try PurgeHook(hook, named: name)
        }
        webhooks = Webhooks.Policy(allow: settings.webhooks.allow, key: settings.webhooks.key)
        if let collector = settings.tracing.endpoint {
            try SettingParser.checkAddress(collector, "tracing.endpoint")
            try SettingParser.checkFields(settings.tracing.headers, "tracing.headers")
        }
        secretWarnings = SecretStrength.warnings(settings)
        logLevel = Logger.Level(rawValue: settings.log.level.rawValue) ?? .info
    }

    private static func store(
        _ settings: Settings.Store.S3, cacheDirectory: String
    ) throws(SettingsError) -> SharedStoreConfiguration? {
        guard let bucket = settings.bucket else { return nil }
        do throws(StoreConfigurationError) {
            var store = try SharedStoreConfiguration(
                bucket: S3Bucket(settings, name: bucket), prefix: settings.prefix ?? "", timeout: settings.timeout,
                lookupTimeout: settings.lookupTimeout,
                outbox: OutboxConfiguration(directory: cacheDirectory + "/outbox", maxBytes: settings.queueBytes.bytes))
            store.fileExtensions = Rendition.Format.allCases.map(\.rawValue) + [Rendition.Format.original.rawValue]
            return store
        } catch {
            throw SettingsError("store.s3.\(error)")
        }
    }

    private static func cluster(_ settings: Settings.Cluster) throws(SettingsError) -> ClusterConfiguration? {
        guard let redis = settings.redis else { return nil }
        return try translating(
            try ClusterConfiguration(address: redis, name: settings.name, node: settings.node, timings: settings.timings)
        ) { (error: ClusterSettingError) in SettingsError("cluster.\(error.setting): \(error)") }
    }
}

extension BlockList {
    /// Reads the file of `block.list`. Blocks.
    fileprivate init(file path: String) throws(SettingsError) {
        let text = try translating(try TextFile.bytes(of: path, atMost: BlockList.maxBytes)) { (error: FileError) in
            SettingsError("block.list: \(error)")
        }
        self = try translating(try text.span.bytes.withUnsafeBytes(BlockList.init)) { (error: BlockList.Invalid) in
            SettingsError("block.list: \(path) is not a block list: \(error).")
        }
    }
}

extension WebPolicy {
    /// - Throws: ``SettingsError`` for a key or URL that cannot be used, or for an encoder that is missing.
    fileprivate init(
        _ settings: Settings, _ fetch: FetchConfiguration, _ mounts: [String: Mount], _ presets: RenditionPresets
    ) throws(SettingsError) {
        self.init(
            version: Gifreel.version, fetch: fetch, cache: settings.cache,
            maxAge: Int(settings.lifetimes.maxAge.components.seconds))
        self.mounts = mounts
        self.presets = presets
        signingKeys = try SigningKeys(settings.signing)
        requiresSignature = settings.signing.isRequired ?? !signingKeys.isEmpty
        options = settings.options.allow == .presets ? .presets : .any
        rateLimit = RateLimit(settings.rateLimit.missesPerMinute, burst: settings.rateLimit.burst)
        uploadLimit = RateLimit(settings.rateLimit.uploadsPerMinute, burst: settings.rateLimit.uploadBurst)
        byteLimit = settings.rateLimit.bytesPerMinute.map { RateLimit(perMinute: $0.bytes, burst: $0.bytes) }
        adminToken = settings.admin.token
        previousAdminToken = settings.admin.previousToken
        metricsReaders = settings.metrics.allow
        metricsHosts = settings.metrics.hosts
        head.cdnMaxAge = settings.lifetimes.cdnMaxAge.map { Int($0.components.seconds) }
        if let origin = settings.server.allowOrigin { try SettingParser.checkOrigin(origin, "server.allow_origin") }
        head.allowOrigin = settings.server.allowOrigin
        publicURL = try Self.publicURL(settings.server)
        hasHomePage = settings.pages.home
        preview.siteName = settings.pages.siteName
        preview.description = settings.pages.description
        preview.twitterSite = settings.pages.twitterSite
        av1After = try Self.av1After(settings.renditions)
    }

    private static func publicURL(_ server: Settings.Server) throws(SettingsError) -> String? {
        guard let text = server.publicURL else { return nil }
        let canonical = try SettingParser.url(text, "server.public_url").canonical
        return canonical.hasSuffix("/") ? String(canonical.dropLast()) : canonical
    }

    private static func av1After(_ settings: Settings.Renditions) throws(SettingsError) -> Int? {
        guard settings.av1 == .background else { return nil }
        guard LinkedLibraries.has(.av1) else {
            throw SettingsError(
                "renditions.av1 is background, but this libavcodec has no encoder for AV1; set it to on_request.")
        }
        return settings.av1After
    }
}

/// Finds secrets that may be guessed, or that are those of several keys.
enum SecretStrength {
    /// A sentence for each such secret, without its value.
    static func warnings(_ settings: Settings) -> [String] {
        let tokens = [
            ("admin.token", settings.admin.token, 16), ("admin.previous_token", settings.admin.previousToken, 16),
            ("webhooks.key", settings.webhooks.key, 32),
        ]
        let keys = settings.signing.keys.map { ("a signing key", $0 as String?, 32) }
        let named = settings.signing.named.sorted { $0.key < $1.key }.map { ("signing.keys.\($0).secret", $1.secret, 32) }
        let weak = (tokens + keys + named).compactMap { name, secret, length in
            secret.flatMap { weakness(of: $0, length) }.map { "\(name) \($0) and may be guessed" }
        }
        // The first key that verifies a signature decides.
        var secrets = Set<String?>(settings.signing.keys)
        return weak
            + named.filter { !secrets.insert($0.1).inserted }.map { "\($0.0) is another key's too, whose hosts and rate apply" }
    }

    /// - Parameter length: The number of bytes at which a random text has enough entropy.
    private static func weakness(of secret: String, _ length: Int) -> String? {
        if secret.utf8.count < length { return "has fewer than \(length) bytes" }
        return Set(secret.utf8).count < leastVariety ? "repeats a few characters" : nil
    }

    /// 16 random hexadecimal digits have fewer different ones in 1 of 30,000 cases.
    private static let leastVariety = 6
}

extension ServiceConfiguration {
    /// Descriptors of logs, libraries, listeners, event loops and databases.
    private static let fixedDescriptors = 64
    /// Descriptors of a conversion: the source, the rendition, the connection to the origin, and two to the worker.
    private static let descriptorsPerConversion = 5
    /// The smallest part that connections and each of the cache's two tables of open renditions get.
    private static let leastDescriptors = 15

    /// Divides the file descriptors among connections, open renditions and conversions.
    ///
    /// - Returns: A warning for the log if the limit is too low for the settings.
    mutating func fit(descriptorLimit limit: Int) -> String? {
        let conversions = Self.descriptorsPerConversion * (pool.workers + pool.queue)
        let needed = http.maxConnections + 2 * cache.hotEntries + conversions + Self.fixedDescriptors
        guard limit < needed else { return nil }
        http.maxConnections = min(http.maxConnections, max(Self.leastDescriptors, limit / 2))
        cache.hotEntries = min(cache.hotEntries, max(Self.leastDescriptors, limit / 8))
        return """
            the limit of \(limit) open files is below the \(needed) that the settings need: at most \(http.maxConnections) connections \
            and \(2 * cache.hotEntries) renditions are open at the same time; raise LimitNOFILE or ulimit -n, or lower \
            server.max_connections
            """
    }
}

internal import Cache
internal import Fetch
internal import HTTP
internal import Logging
internal import Media
internal import Prewarm
internal import Renditions
internal import Sandbox

extension ServiceConfiguration {
    /// Reads every setting and checks it.
    ///
    /// - Throws: ``ConfigurationError``, which names the first setting that is wrong.
    package init(_ settings: SettingsReader) throws(ConfigurationError) {
        self.init()
        try readServer(settings)
        try readCache(settings)
        try readSources(settings)
        try readTranscoding(settings)
        try readAccess(settings)
        try readPages(settings)
        try readMounts(settings)
        adminToken = try settings.text("admin.token")
        prewarm.concurrency = max(1, pool.workers / 2)
        if try settings.text("prewarm.concurrency") != nil {
            prewarm.concurrency = try settings.number("prewarm.concurrency", in: 1...256)
        }
        prewarm.urls = try settings.number("prewarm.max_urls", in: 1...1_000_000)
        let readers = try settings.list("metrics.allow")
        guard let list = ClientList(readers) else {
            throw .wrongValue("metrics.allow", readers.joined(separator: ","), "addresses, networks or unix")
        }
        metricsReaders = list
        logLevel = try settings.choice("log.level", Logger.Level.allCases)
        logFormat = try settings.choice("log.format", LogFormat.allCases)
        http.recordsClientFields = try settings.flag("log.client")
        try validate()
    }

    /// Asks each room whether it can work with its part.
    package func validate() throws(ConfigurationError) {
        do {
            try http.validate()
            try cache.validate()
        } catch {
            throw ConfigurationError("\(error)")
        }
        do throws(FetchConfigurationError) {
            try fetch.validate()
        } catch {
            throw ConfigurationError("sources.\(error)")
        }
    }

    private mutating func readServer(_ settings: SettingsReader) throws(ConfigurationError) {
        http.host = try settings.text("server.host") ?? ""
        http.port = try settings.number("server.port", in: 0...65535)
        http.unixPath = try settings.text("server.unix_path")
        if let mode = try settings.text("server.unix_mode") {
            guard let bits = UInt32(mode, radix: 8), bits <= 0o777 else {
                throw .wrongValue("server.unix_mode", mode, "an octal number from 0 to 0777")
            }
            http.unixMode = bits
        }
        http.unixGroup = try settings.text("server.unix_group")
        if try settings.text("server.threads") != nil {
            http.threads = try settings.number("server.threads", in: 1...256)
        }
        http.maxConnections = try settings.number("server.max_connections", in: 1...1_000_000)
        http.headTimeout = try settings.duration("server.head_timeout")
        http.idleTimeout = try settings.duration("server.idle_timeout")
        http.bodyTimeout = try settings.duration("server.body_timeout")
        shutdownDelay = try settings.duration("server.shutdown_delay")
        http.drainTimeout = try settings.duration("server.drain_timeout")
        http.trustedProxies = try settings.list("server.trusted_proxies")
        portFile = try settings.text("server.port_file")
        allowOrigin = try settings.text("server.allow_origin")
    }

    private mutating func readCache(_ settings: SettingsReader) throws(ConfigurationError) {
        cache.directory = try settings.text("cache.dir") ?? cache.directory
        cache.maxBytes = Int64(try settings.bytes("cache.max_bytes"))
        cache.minFreeBytes = Int64(try settings.bytes("cache.min_free_bytes"))
        cache.freshFor = try settings.duration("cache.fresh_for").components.seconds
        cache.staleFor = try settings.duration("cache.stale_for").components.seconds
        originRules = OriginRules(
            isObeyed: try settings.flag("cache.obey_origin"),
            shortest: try settings.duration("cache.min_fresh_for").components.seconds,
            longest: try settings.duration("cache.max_fresh_for").components.seconds)
        guard originRules.shortest <= originRules.longest else {
            throw ConfigurationError("cache.min_fresh_for must not be more than cache.max_fresh_for.")
        }
        maxAge = Int(try settings.duration("cache.max_age").components.seconds)
    }

    private mutating func readSources(_ settings: SettingsReader) throws(ConfigurationError) {
        fetch.allow = try settings.items("sources.allow", "patterns such as *.example.com/media/") { SourcePattern($0) }
        fetch.allowPrivate = try settings.items("sources.allow_private", "addresses, networks or hosts") {
            AddressException($0)
        }
        fetch.translationPrefixes = try settings.items(
            "sources.nat64_prefixes", "IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits"
        ) { TranslationPrefix($0) }
        fetch.ports = PortSet(
            try settings.items("sources.ports", "ports from 1 to 65535, or ranges such as 8000-8999") { PortSet.range($0) })
        fetch.maxBytes = try settings.bytes("sources.max_bytes")
        fetch.connectTimeout = try settings.duration("sources.connect_timeout")
        fetch.timeout = try settings.duration("sources.timeout")
        fetch.maxRedirects = try settings.number("sources.max_redirects", in: 0...50)
        fetch.concurrency = try settings.number("sources.concurrency", in: 1...4096)
        fetch.userAgent = "gifreel/\(Gifreel.version)"
    }

    private mutating func readTranscoding(_ settings: SettingsReader) throws(ConfigurationError) {
        let cores = HTTPServerConfiguration().threads
        pool.threadsAlone = cores
        pool.workers = cores
        if try settings.text("transcode.workers") != nil {
            pool.workers = try settings.number("transcode.workers", in: 1...256)
        }
        pool.queue = try settings.number("transcode.queue", in: 0...100_000)
        queueTimeout = try settings.duration("transcode.queue_timeout")
        queueBytes = try settings.bytes("transcode.queue_bytes")
        limits.side = try settings.number("limits.side", in: 1...16384)
        limits.canvasPixels = try settings.number("limits.canvas_pixels", in: 1...134_217_728)
        limits.totalPixels = try settings.number("limits.total_pixels", in: 1...Int.max)
        limits.pixelsPerByte = try settings.number("limits.pixels_per_byte", in: 1...Int.max)
        limits.frames = try settings.number("limits.frames", in: 1...1_000_000)
        limits.duration = Int(try settings.duration("limits.duration") / .milliseconds(10))
        allowance = WorkerJob.Allowance(
            cpu: max(1, Int(try settings.duration("limits.cpu").components.seconds)),
            memory: try settings.bytes("limits.memory"))
        requiresSandbox = try settings.flag("sandbox.require")
    }
}

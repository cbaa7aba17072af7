package import Fetch
package import Fleet
package import HTTP
package import Media
package import Renditions
package import Sandbox
package import Store
package import SystemIO

/// The value of every setting. `Settings()` holds the defaults.
///
/// A setting that a target's configuration defines is a property of that configuration, so that its default is written in one
/// place. Other settings, and those that the composition of the server transforms, such as mounts, are properties of the groups
/// below. ``Setting/all`` has one row per setting, with its meaning, its range and the property that holds it.
package struct Settings: Sendable {
    package var http = HTTPServerConfiguration()
    package var cache = CacheConfiguration()
    package var fetch = FetchConfiguration()
    package var limits = MediaLimits.standard
    /// Only ``WorkerAllowance/cpu`` and ``WorkerAllowance/memory`` are settings.
    package var allowance = WorkerAllowance()

    package var server = Server()
    package var originRules = OriginRules()
    package var lifetimes = Lifetimes()
    package var signing = Signing()
    package var options = Options()
    /// The path of a file with the sources that are refused.
    package var blockList: String?
    package var flashLimit = FlashLimit.off
    /// Options by the name of their preset.
    package var presets: [String: [OptionPair]] = [:]
    package var rateLimit = RateLimit()
    package var transcode = Transcode()
    package var requiresSandbox = true
    /// Origins by the name of their mount.
    package var mounts: [String: Mount] = [:]
    package var store = Store()
    package var cluster = Cluster()
    package var renditions = Renditions()
    package var pages = Pages()
    package var admin = Admin()
    package var purge = Purge()
    package var prewarm = Prewarm()
    package var maxStatuses = 4096
    package var webhooks = Webhooks()
    package var metrics = Metrics()
    package var tracing = Tracing()
    package var log = Log()

    package init() {}

    package struct Server: Sendable {
        package var portFile: String?
        package var shutdownDelay = Duration.zero
        package var allowOrigin: String? = "*"
        package var publicURL: String?
    }

    /// How long responses are fresh.
    package struct Lifetimes: Sendable {
        package var maxAge = Duration.seconds(86_400)
        package var cdnMaxAge: Duration?
    }

    package struct Signing: Sendable {
        package var keys: [String] = []
        /// Keys by their names.
        package var named: [String: Key] = [:]
        /// Nil requires signatures if there is a key.
        package var isRequired: Bool?

        /// A key with a name, and the limits of its requests.
        package struct Key: Sendable {
            package var secret: String?
            package var hosts: [SourcePattern] = []
            package var missesPerMinute = 0
            package var burst = 30

            package init() {}
        }
    }

    package struct Options: Sendable {
        package var allow = Allow.any

        /// The options that unsigned requests may have.
        package enum Allow: String, SettingChoice {
            case any
            case presets
        }
    }

    package struct RateLimit: Sendable {
        package var missesPerMinute = 0
        package var burst = 30
        package var uploadsPerMinute = 0
        package var uploadBurst = 10
        package var bytesPerMinute: ByteCount?
    }

    package struct Transcode: Sendable {
        package var workers: Int?
        package var queue = 64
        package var queueTimeout = Duration.seconds(20)
        package var waitTimeout = Duration.seconds(120)
        package var queueBytes = ByteCount.gibibytes(1)
    }

    package struct Renditions: Sendable {
        package var av1 = AV1.onRequest
        package var av1After = 20
        package var undither = Undither.auto

        /// When a rendition in AV1 is produced.
        package enum AV1: String, SettingChoice {
            /// A client requests it.
            case onRequest = "on_request"
            /// The rendition that clients get instead was requested ``Renditions/av1After`` times.
            case background
        }

        /// Whether dither is removed from renditions whose requests do not have the option.
        package enum Undither: String, SettingChoice {
            case never
            case auto
        }
    }

    package struct Mount: Sendable {
        package var origin: String?
        package var allow: [String] = []
        package var sources = [SourceFormat.gif]
        package var negotiate = false
        package var onMiss: OnMiss?
        package var onError = OnError.problem
        package var freshFor: Duration?
        package var maxAge: Duration?
        package var requireSignature: Bool?
        package var query = Query.options
        package var headers: [String] = []
        package var s3 = S3()

        package init() {}

        /// How the objects of an origin `s3://bucket/prefix` are reached.
        package struct S3: Sendable, Equatable {
            package var endpoint: String?
            package var region: String?
            package var pathStyle: Bool?
            package var accessKey: String?
            package var secretKey: String?

            package init() {}
        }

        /// The answer of a negotiating mount while a rendition is being produced.
        package enum OnMiss: String, SettingChoice {
            case wait
            case original
        }

        /// The answer of a mount if a rendition cannot be produced.
        package enum OnError: String, SettingChoice {
            case problem
            case original
        }

        /// The meaning of parameters that are not options.
        package enum Query: String, SettingChoice {
            /// An error.
            case options
            /// A part of the source's URL.
            case forward
        }
    }

    package struct Store: Sendable {
        package var s3 = S3()

        package struct S3: Sendable {
            package var endpoint: String?
            package var bucket: String?
            package var region = "us-east-1"
            package var prefix: String?
            package var accessKey: String?
            package var secretKey: String?
            package var pathStyle = false
            package var timeout = Duration.seconds(10)
            package var lookupTimeout = Duration.milliseconds(250)
            package var queueBytes = ByteCount.gibibytes(2)
            package var drainTimeout = Duration.seconds(15)
        }
    }

    package struct Cluster: Sendable {
        package var redis: String?
        package var name = "gifreel"
        package var node: String?
        package var catchUp: Duration = .seconds(30)
        package var timings = ClusterTimings()
    }

    package struct Pages: Sendable {
        package var home = true
        package var siteName: String?
        package var description: String?
        package var twitterSite: String?
    }

    package struct Admin: Sendable {
        package var token: String?
        package var previousToken: String?
    }

    package struct Purge: Sendable {
        /// Requests that notify CDNs of purges, by name.
        package var hooks: [String: Hook] = [:]

        package struct Hook: Sendable {
            package var url: String?
            package var method = Method.post
            package var headers: [String] = []
            package var body: String?
            package var scopes = Scope.allCases

            package init() {}
        }

        /// The extent of a purge.
        package enum Scope: String, SettingChoice {
            case url
            case prefix
            case host
            case object
            case all
        }

        package enum Method: String, SettingChoice {
            case post = "POST"
            case put = "PUT"
            case delete = "DELETE"
            case purge = "PURGE"
        }
    }

    package struct Prewarm: Sendable {
        package var concurrency: Int?
        package var maxURLs = 50_000
    }

    package struct Webhooks: Sendable {
        package var allow: [SourcePattern] = []
        package var key: String?
    }

    package struct Metrics: Sendable {
        package var allow = ClientList(
            ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "unix"]
                .compactMap(ClientPattern.init))
        package var hosts: [SourcePattern] = []
    }

    package struct Tracing: Sendable {
        package var endpoint: String?
        package var headers: [String] = []
        package var sample = 100
        package var queue = 2048
    }

    package struct Log: Sendable {
        package var level = Level.info
        package var format = LogFormat.text
        package var client = false

        /// The levels of swift-log.
        package enum Level: String, SettingChoice {
            case trace, debug, info, notice, warning, error, critical
        }
    }
}

extension Settings: Equatable {
    /// Whether every setting has the same value in both.
    package static func == (left: Settings, right: Settings) -> Bool {
        Setting.all.allSatisfy { $0.values(in: left) == $0.values(in: right) }
    }
}

extension Settings {
    /// Checks combinations of settings. The range of each single value is checked when it is read.
    ///
    /// - Throws: ``SettingsError`` for the first combination that cannot work.
    package func validate() throws(SettingsError) {
        if http.host == nil && http.unixPath == nil {
            throw SettingsError("server.host is empty and server.unix_path is not set; set one of them to listen on.")
        }
        if let path = http.unixPath, path.utf8.count > 107 {
            throw SettingsError("server.unix_path has \(path.utf8.count) bytes; a Unix socket's path has at most 107.")
        }
        if originRules.minFreshFor > originRules.maxFreshFor {
            throw SettingsError(
                "cache.min_fresh_for (\(originRules.minFreshFor.wholeSeconds.settingText)) is longer than cache.max_fresh_for "
                    + "(\(originRules.maxFreshFor.wholeSeconds.settingText)); it must not be.")
        }
        if limits.formats.isEmpty {
            throw SettingsError("sources.formats is empty; it must name at least one format.")
        }
        if fetch.ports.ranges.isEmpty {
            throw SettingsError("sources.ports is empty; it must name at least one port.")
        }
        if !FetchConfiguration.isLoopName(fetch.loopName) {
            throw .wrongValue("sources.loop_name", fetch.loopName, "one word of printable ASCII without comma and semicolon")
        }
        if let agent = fetch.userAgent, !RequestField.isValid("Agent: \(agent)") {
            throw .wrongValue("sources.user_agent", agent, "printable ASCII")
        }
        for (name, key) in signing.named.sorted(by: { $0.key < $1.key }) where key.secret == nil {
            throw SettingsError("signing.keys.\(name).secret is missing; a key needs a secret.")
        }
        if !webhooks.allow.isEmpty && webhooks.key == nil {
            throw SettingsError(
                "webhooks.allow names receivers but webhooks.key is not set; set a key or remove webhooks.allow.")
        }
        if admin.previousToken != nil && admin.token == nil {
            throw SettingsError("admin.previous_token is set but admin.token is not; set admin.token to the new token.")
        }
        if !tracing.headers.isEmpty && tracing.endpoint == nil {
            throw SettingsError("tracing.headers is set but tracing.endpoint is not; set an endpoint or remove the headers.")
        }
        for (name, patterns) in [("sources.allow", fetch.allow), ("webhooks.allow", webhooks.allow)] {
            guard let files = patterns.first(where: \.namesFiles) else { continue }
            throw .wrongValue(name, files.description, "a pattern of hosts; files are available through mounts only")
        }
        // The Host field of a request contains neither a scheme nor a path.
        if let wrong = metrics.hosts.first(where: { $0.description.contains("/") }) {
            throw .wrongValue("metrics.hosts", wrong.description, "a host without scheme and path")
        }
        try requireKeys("sources.require_signature", signing.isRequired)
        for (name, mount) in mounts.sorted(by: { $0.key < $1.key }) {
            if mount.origin == nil { throw SettingsError("mounts.\(name).origin is missing; a mount needs an origin.") }
            try requireKeys("mounts.\(name).require_signature", mount.requireSignature)
        }
    }

    /// Prevents a server whose bucket is missing from starting without the shared store. On a reload, only the settings that were
    /// read are checked: a mount that used the store's keys may go before the keys, which wait for a restart.
    func checkStore() throws(SettingsError) {
        let s3 = store.s3
        guard s3.bucket == nil else { return }
        // Mounts use the service and its keys without a bucket of the store.
        let isUsed = mounts.values.contains { $0.origin?.lowercased().hasPrefix(SourceURL.s3Scheme) == true }
        let shared = [("endpoint", s3.endpoint), ("access_key", s3.accessKey), ("secret_key", s3.secretKey)]
        for (name, value) in [("prefix", s3.prefix)] + (isUsed ? [] : shared) where value != nil {
            throw SettingsError("store.s3.\(name) is set but store.s3.bucket is not; set a bucket or remove \(name).")
        }
    }

    /// Prevents a server that must require signatures from starting without them because a secret is missing.
    private func requireKeys(_ name: String, _ isRequired: Bool?) throws(SettingsError) {
        guard isRequired == true && signing.keys.isEmpty && signing.named.isEmpty else { return }
        throw SettingsError("\(name) is true but signing.keys holds no key; set a key or remove \(name).")
    }
}

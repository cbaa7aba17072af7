/// The value of every setting. `Settings()` holds the defaults.
///
/// This is a plain value: it knows no other target, and holds patterns, addresses and URLs as text. The composition root
/// maps it to the configuration of each target. ``Setting/all`` has one row per property, with its meaning and its range.
package struct Settings: Sendable, Equatable {
    package var server = Server()
    package var cache = Cache()
    package var sources = Sources()
    package var signing = Signing()
    package var options = Options()
    /// Options by the name of their preset.
    package var presets: [String: [OptionPair]] = [:]
    package var rateLimit = RateLimit()
    package var transcode = Transcode()
    package var sandbox = Sandbox()
    package var limits = Limits()
    /// Origins by the name of their mount.
    package var mounts: [String: Mount] = [:]
    package var store = Store()
    package var cluster = Cluster()
    package var renditions = Renditions()
    package var pages = Pages()
    package var admin = Admin()
    package var purge = Purge()
    package var prewarm = Prewarm()
    package var async = Async()
    package var webhooks = Webhooks()
    package var metrics = Metrics()
    package var tracing = Tracing()
    package var log = Log()

    package init() {}

    package struct Server: Sendable, Equatable {
        package var host: String? = "127.0.0.1"
        package var port = 8080
        package var portFile: String?
        package var unixPath: String?
        package var unixMode: String?
        package var unixGroup: String?
        package var threads: Int?
        package var maxConnections = 8192
        package var maxConnectionsPerClient = 256
        package var headTimeout = Duration.seconds(10)
        package var idleTimeout = Duration.seconds(75)
        package var bodyTimeout = Duration.seconds(300)
        package var responseTimeout = Duration.seconds(300)
        package var shutdownDelay = Duration.zero
        package var drainTimeout = Duration.seconds(20)
        package var trustedProxies: [String] = []
        package var forwardedField = ForwardedField.xForwardedFor
        package var allowOrigin: String? = "*"
        package var publicURL: String?

        /// The fields in which the trusted proxies report the client.
        package enum ForwardedField: String, SettingChoice {
            case xForwardedFor = "x-forwarded-for"
            case forwarded
        }
    }

    package struct Cache: Sendable, Equatable {
        package var dir = "var/cache"
        package var maxBytes = ByteCount.gibibytes(10)
        package var minFreeBytes = ByteCount.gibibytes(1)
        package var freshFor = Duration.seconds(86_400)
        package var staleFor = Duration.seconds(7 * 86_400)
        package var goneGrace = Duration.seconds(600)
        package var obeyOrigin = true
        package var minFreshFor = Duration.seconds(60)
        package var maxFreshFor = Duration.seconds(30 * 86_400)
        package var maxAge = Duration.seconds(86_400)
        package var cdnMaxAge: Duration?
    }

    package struct Sources: Sendable, Equatable {
        package var allow = ["*"]
        package var allowPrivate: [String] = []
        package var nat64Prefixes: [String] = []
        package var ports = [80, 443, 8080, 8443].map { PortRange($0...$0) }
        package var maxBytes = ByteCount.mebibytes(20)
        package var connectTimeout = Duration.seconds(3)
        package var timeout = Duration.seconds(10)
        package var stallTimeout = Duration.seconds(10)
        package var maxRedirects = 5
        package var concurrency = 64
        package var requireSignature: Bool?
        package var loopName = "gifreel"
        package var formats = Mount.Source.allCases
    }

    package struct Signing: Sendable, Equatable {
        package var keys: [String] = []
        /// Keys by their names.
        package var named: [String: Key] = [:]

        /// A key with a name, and the limits of its requests.
        package struct Key: Sendable, Equatable {
            package var secret: String?
            package var hosts: [String] = []
            package var missesPerMinute = 0
            package var burst = 30

            package init() {}
        }
    }

    package struct Options: Sendable, Equatable {
        package var allow = Allow.any

        /// The options that unsigned requests may have.
        package enum Allow: String, SettingChoice {
            case any
            case presets
        }
    }

    package struct RateLimit: Sendable, Equatable {
        package var missesPerMinute = 0
        package var burst = 30
        package var uploadsPerMinute = 0
        package var uploadBurst = 10
        package var bytesPerMinute: ByteCount?
    }

    package struct Transcode: Sendable, Equatable {
        package var workers: Int?
        package var queue = 64
        package var queueTimeout = Duration.seconds(20)
        package var waitTimeout = Duration.seconds(120)
        package var queueBytes = ByteCount.gibibytes(1)
    }

    package struct Sandbox: Sendable, Equatable {
        package var require = true
    }

    package struct Limits: Sendable, Equatable {
        package var side = 4096
        package var canvasPixels = 8_300_000
        package var totalPixels = 1_000_000_000
        package var pixelsPerByte = 1000
        package var frames = 5000
        package var duration = Duration.seconds(86_400)
        package var clipDuration = Duration.seconds(60)
        package var cpu = Duration.seconds(30)
        package var memory = ByteCount.mebibytes(512)
    }

    package struct Renditions: Sendable, Equatable {
        package var av1 = AV1.onRequest
        package var av1After = 20
        package var undither = Undither.never

        /// When a rendition in AV1 is produced.
        package enum AV1: String, SettingChoice {
            /// A client requests it.
            case onRequest = "on_request"
            /// What a client gets instead was requested ``Renditions/av1After`` times.
            case background
        }

        /// Whether dither is removed from renditions whose requests do not have the option.
        package enum Undither: String, SettingChoice {
            case never
            case auto
        }
    }

    package struct Mount: Sendable, Equatable {
        package var origin: String?
        package var allow: [String] = []
        package var sources = [Source.gif]
        package var negotiate = false
        package var onMiss = OnMiss.wait
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

        /// A format of sources.
        package enum Source: String, SettingChoice {
            case gif
            case apng
            case webp
            case avif
            case mp4
            case mov
            case webm
        }

        /// What a mount that negotiates answers while a rendition is being produced.
        package enum OnMiss: String, SettingChoice {
            case wait
            case original
        }

        /// What a mount answers if a rendition cannot be produced.
        package enum OnError: String, SettingChoice {
            case problem
            case original
        }

        /// What parameters that are not options mean.
        package enum Query: String, SettingChoice {
            /// An error.
            case options
            /// A part of the source's URL.
            case forward
        }
    }

    package struct Store: Sendable, Equatable {
        package var s3 = S3()

        package struct S3: Sendable, Equatable {
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

    package struct Cluster: Sendable, Equatable {
        package var redis: String?
        package var name = "gifreel"
        package var node: String?
        package var catchUp: Duration = .seconds(30)
        package var alone: Duration = .seconds(600)
    }

    package struct Pages: Sendable, Equatable {
        package var home = true
    }

    package struct Admin: Sendable, Equatable {
        package var token: String?
    }

    package struct Purge: Sendable, Equatable {
        /// Requests that tell CDNs about purges, by their names.
        package var hooks: [String: Hook] = [:]

        package struct Hook: Sendable, Equatable {
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

    package struct Prewarm: Sendable, Equatable {
        package var concurrency: Int?
        package var maxURLs = 50_000
    }

    package struct Async: Sendable, Equatable {
        package var maxStatuses = 4096
    }

    package struct Webhooks: Sendable, Equatable {
        package var allow: [String] = []
        package var key: String?
    }

    package struct Metrics: Sendable, Equatable {
        package var allow = ["127.0.0.0/8", "::1", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "unix"]
    }

    package struct Tracing: Sendable, Equatable {
        package var endpoint: String?
        package var headers: [String] = []
        package var sample = 100
        package var queue = 2048
    }

    package struct Log: Sendable, Equatable {
        package var level = Level.info
        package var format = Format.text
        package var client = false

        /// The levels of swift-log.
        package enum Level: String, SettingChoice {
            case trace, debug, info, notice, warning, error, critical
        }

        package enum Format: String, SettingChoice {
            case text, json
        }
    }
}

extension Settings {
    /// Checks combinations of settings. The range of each single value is checked when it is read.
    ///
    /// - Throws: ``SettingsError`` for the first combination that cannot work.
    package func validate() throws(SettingsError) {
        if server.host == nil && server.unixPath == nil {
            throw SettingsError("server.host is empty and server.unix_path is not set; set one of them to listen on.")
        }
        if let path = server.unixPath, path.utf8.count > 107 {
            throw SettingsError("server.unix_path has \(path.utf8.count) bytes; a Unix socket's path has at most 107.")
        }
        if let mode = server.unixMode, UInt32(mode, radix: 8).map({ $0 > 0o777 }) ?? true {
            throw SettingsError("server.unix_mode is “\(mode)”; it must be an octal number from 0 to 0777.")
        }
        if cache.minFreshFor > cache.maxFreshFor {
            throw SettingsError(
                "cache.min_fresh_for (\(cache.minFreshFor.settingText)) is longer than cache.max_fresh_for "
                    + "(\(cache.maxFreshFor.settingText)); it must not be.")
        }
        if sources.formats.isEmpty {
            throw SettingsError("sources.formats is empty; it must name at least one format.")
        }
        if sources.ports.isEmpty {
            throw SettingsError("sources.ports is empty; it must name at least one port.")
        }
        for (name, key) in signing.named.sorted(by: { $0.key < $1.key }) where key.secret == nil {
            throw SettingsError("signing.keys.\(name).secret is missing; a key needs a secret.")
        }
        if !webhooks.allow.isEmpty && webhooks.key == nil {
            throw SettingsError(
                "webhooks.allow names receivers but webhooks.key is not set; set a key or remove webhooks.allow.")
        }
        try requireKeys("sources.require_signature", sources.requireSignature)
        for (name, mount) in mounts.sorted(by: { $0.key < $1.key }) {
            if mount.origin == nil { throw SettingsError("mounts.\(name).origin is missing; a mount needs an origin.") }
            try requireKeys("mounts.\(name).require_signature", mount.requireSignature)
        }
    }

    /// A server that is meant to require signatures must not start without them because a secret is missing.
    private func requireKeys(_ name: String, _ isRequired: Bool?) throws(SettingsError) {
        guard isRequired == true && signing.keys.isEmpty && signing.named.isEmpty else { return }
        throw SettingsError("\(name) is true but signing.keys holds no key; set a key or remove \(name).")
    }
}

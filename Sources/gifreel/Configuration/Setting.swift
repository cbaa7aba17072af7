/// One setting: its name, what kind of value it takes, its default and what it is for.
package struct Setting: Sendable {
    /// What a value looks like.
    package enum Kind: Sendable {
        case text
        case list
        /// A whole number.
        case number
        /// `true` or `false`.
        case flag
        /// A number with a unit: `B`, `KiB`, `MiB`, `GiB`, `TiB`.
        case bytes
        /// A number with a unit: `ms`, `s`, `m`, `h`, `d`.
        case duration
    }

    /// As in the file, such as `sources.allow_private`; `*` stands for a name the user chooses.
    package let name: String
    package let kind: Kind
    /// The default as it would be written in the file; empty for none.
    package let fallback: String
    /// Never shown or logged.
    package let isSecret: Bool

    init(_ name: String, _ kind: Kind, _ fallback: String = "", isSecret: Bool = false) {
        self.name = name
        self.kind = kind
        self.fallback = fallback
        self.isSecret = isSecret
    }

    /// The variable of the environment that sets it: `GIFREEL_SOURCES_ALLOW_PRIVATE`.
    var environmentName: String {
        "GIFREEL_" + name.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    /// Whether the setting is called `candidate`, compared piece by piece.
    func matches(_ candidate: String, separator: Character = ".") -> Bool {
        let own = name.split(separator: ".")
        let other = candidate.split(separator: separator, omittingEmptySubsequences: false)
        return own.count == other.count && zip(own, other).allSatisfy { $0 == "*" ? !$1.isEmpty : $0 == $1 }
    }
}

extension Setting {
    /// Every setting there is (docs/api.md).
    package static let all: [Setting] = [
        Setting("server.host", .text, "127.0.0.1"),
        Setting("server.port", .number, "8080"),
        Setting("server.port_file", .text),
        Setting("server.unix_path", .text),
        Setting("server.unix_mode", .text),
        Setting("server.unix_group", .text),
        Setting("server.threads", .number),
        Setting("server.max_connections", .number, "8192"),
        Setting("server.head_timeout", .duration, "10s"),
        Setting("server.idle_timeout", .duration, "75s"),
        Setting("server.body_timeout", .duration, "5m"),
        Setting("server.shutdown_delay", .duration, "0s"),
        Setting("server.drain_timeout", .duration, "20s"),
        Setting("server.trusted_proxies", .list),
        Setting("server.allow_origin", .text, "*"),
        Setting("server.public_url", .text),
        Setting("cache.dir", .text, "var/cache"),
        Setting("cache.max_bytes", .bytes, "10GiB"),
        Setting("cache.min_free_bytes", .bytes, "1GiB"),
        Setting("cache.fresh_for", .duration, "1d"),
        Setting("cache.stale_for", .duration, "7d"),
        Setting("cache.obey_origin", .flag, "true"),
        Setting("cache.min_fresh_for", .duration, "1m"),
        Setting("cache.max_fresh_for", .duration, "30d"),
        Setting("cache.max_age", .duration, "1d"),
        Setting("sources.allow", .list, "*"),
        Setting("sources.allow_private", .list),
        Setting("sources.nat64_prefixes", .list),
        Setting("sources.ports", .list, "80,443,8080,8443"),
        Setting("sources.max_bytes", .bytes, "20MiB"),
        Setting("sources.connect_timeout", .duration, "3s"),
        Setting("sources.timeout", .duration, "10s"),
        Setting("sources.max_redirects", .number, "5"),
        Setting("sources.concurrency", .number, "64"),
        Setting("sources.require_signature", .flag),
        Setting("sources.loop_name", .text, "gifreel"),
        Setting("transcode.workers", .number),
        Setting("transcode.queue", .number, "64"),
        Setting("transcode.queue_timeout", .duration, "20s"),
        Setting("transcode.queue_bytes", .bytes, "1GiB"),
        Setting("sandbox.require", .flag, "false"),
        Setting("limits.side", .number, "4096"),
        Setting("limits.canvas_pixels", .number, "8300000"),
        Setting("limits.total_pixels", .number, "1000000000"),
        Setting("limits.pixels_per_byte", .number, "1000"),
        Setting("limits.frames", .number, "5000"),
        Setting("limits.duration", .duration, "1d"),
        Setting("limits.cpu", .duration, "30s"),
        Setting("limits.memory", .bytes, "512MiB"),
        Setting("signing.keys", .list, isSecret: true),
        Setting("rate_limit.misses_per_minute", .number, "0"),
        Setting("rate_limit.burst", .number, "30"),
        Setting("mounts.*.origin", .text),
        Setting("mounts.*.allow", .list),
        Setting("mounts.*.negotiate", .flag, "false"),
        Setting("mounts.*.query", .text, "options"),
        Setting("mounts.*.fresh_for", .duration),
        Setting("mounts.*.max_age", .duration),
        Setting("mounts.*.require_signature", .flag),
        Setting("pages.home", .flag, "true"),
        Setting("admin.token", .text, isSecret: true),
        Setting("prewarm.concurrency", .number),
        Setting("prewarm.max_urls", .number, "50000"),
        Setting(
            "metrics.allow", .list, "127.0.0.0/8,::1,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,fc00::/7,unix"),
        Setting("log.level", .text, "info"),
        Setting("log.format", .text, "text"),
        Setting("log.client", .flag, "false"),
    ]

    /// The setting called `name`.
    static func named(_ name: String) -> Setting? {
        all.first { $0.matches(name) }
    }
}

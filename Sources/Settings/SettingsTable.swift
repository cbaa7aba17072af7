internal import Fetch
internal import Fleet
internal import HTTP
internal import Media
internal import Renditions
internal import Sandbox
internal import Store

extension Setting {
    /// Every setting. The reader, `config/gifreel.yaml`, `docs/configuration.md`, the manual page and the reload plan derive
    /// from these rows.
    package static let all: [Setting] =
        server + cache + sources + signing + requests + transcode + limits + renditions + mounts + store + cluster + pages
        + purge
        + work + observation

    private static let hour = Duration.seconds(3600)
    private static let day = Duration.seconds(86_400)
    private static let decade = Duration.seconds(3650 * 86_400)
    private static let millisecond = Duration.milliseconds(1)

    private static let server = [
        Setting(
            "server.host", \.http.host, .restart,
            "Address or host name to listen on. 0.0.0.0 listens on IPv4, :: on IPv4 and IPv6; empty listens on unix_path only."),
        Setting(
            "server.port", \.http.port, in: 0...65535, .restart,
            "TCP port to listen on. 0 selects a free port, which the log and port_file report."),
        Setting(
            "server.port_file", \.server.portFile, .restart, example: "var/port",
            "File that the server writes its TCP port to once it listens."),
        Setting(
            "server.unix_path", \.http.unixPath, .restart, example: "var/gifreel.sock",
            "Path of a Unix socket to listen on in addition to TCP; at most 107 bytes."),
        Setting(
            "server.unix_mode", \.http.unixMode.permissionBits, .restart, whenUnset: "0777 less the umask", example: "0660",
            "Permission bits of unix_path, in octal. Connecting needs write permission."),
        Setting(
            "server.unix_group", \.http.unixGroup, .restart, whenUnset: "the group of the process", example: "www-data",
            "Group of unix_path, by name or number."),
        Setting(
            "server.threads", \.http.threads, in: 1...256, .restart, whenUnset: "one per processor", example: "2",
            "Number of I/O threads."),
        Setting(
            "server.max_connections", \.http.maxConnections, in: 1...1_000_000, unit: "connections", .restart,
            "Connections open at the same time. At the limit the server closes idle ones, then stops accepting."),
        Setting(
            "server.max_connections_per_client", \.http.maxConnectionsPerClient, in: 1...1_000_000, unit: "connections",
            .restart,
            "Connections that one client (an IPv4 address or IPv6 /64) may have open. Trusted proxies have no such limit."),
        Setting(
            "server.head_timeout", \.http.headTimeout, in: millisecond...day, .restart,
            "Time within which the head of a request must arrive."),
        Setting(
            "server.idle_timeout", \.http.idleTimeout, in: millisecond...day, .restart,
            "Time after which an idle connection between two requests is closed."),
        Setting(
            "server.body_timeout", \.http.bodyTimeout, in: millisecond...day, .restart,
            "Time within which the whole body of an upload must arrive."),
        Setting(
            "server.response_timeout", \.http.responseTimeout, in: millisecond...day, .restart,
            "Time within which a client must receive a response, plus a second per 16 KiB. A slower client is disconnected."),
        Setting(
            "server.shutdown_delay", \.server.shutdownDelay, in: .zero...day, .live,
            "Time after SIGTERM during which /readyz is 503 and connections are still accepted, before draining starts."),
        Setting(
            "server.drain_timeout", \.http.drainTimeout, in: .zero...day, .restart,
            "Time that requests in progress have to finish after SIGTERM."),
        Setting(
            "server.trusted_proxies", \.http.trustedProxies.patterns, .restart, example: "10.0.0.0/8",
            "Addresses, networks or unix (the Unix socket) of proxies that report clients in the field that forwarded_field names."
        ),
        Setting(
            "server.forwarded_field", \.http.forwardedField, .restart,
            "Field that the trusted proxies write, the only one that is read. x-forwarded-for includes X-Forwarded-Proto."),
        Setting(
            "server.allow_origin", \.server.allowOrigin, .live,
            "Value of Access-Control-Allow-Origin in responses: * or one origin; empty sends none."),
        Setting(
            "server.public_url", \.server.publicURL, .live, whenUnset: "the scheme and the Host of the request",
            example: "https://gifs.example.com",
            "URL at which clients reach the server, used for links in pages."),
    ]

    private static let cache = [
        Setting(
            "cache.dir", \.cache.directory, .restart,
            "Directory of the cache. Each server needs its own directory."),
        Setting(
            "cache.max_bytes", \.cache.maxBytes.byteCount, in: .mebibytes(1) ... .tebibytes(1 << 20), .live,
            "Size of the cache. Renditions that are not requested are evicted first."),
        Setting(
            "cache.min_free_bytes", \.cache.minFreeBytes.byteCount, in: .zero ... .tebibytes(1 << 20), .live,
            "Free space to leave on the file system. Below it, renditions are evicted and new ones are not stored."),
        Setting(
            "cache.fresh_for", \.cache.freshFor.wholeSeconds, inWholeSeconds: .zero...decade, .restart,
            "Time after which the server asks the origin again whether a source has changed."),
        Setting(
            "cache.stale_for", \.cache.staleFor.wholeSeconds, inWholeSeconds: .zero...decade, .restart,
            "Time after that in which a stale rendition may be served while the origin is asked or does not respond."),
        Setting(
            "cache.gone_grace", \.originRules.goneGrace.wholeSeconds, inWholeSeconds: .zero...decade, .live,
            "Time after the first 404 of an origin in which stale renditions of the source are still served."),
        Setting(
            "cache.obey_origin", \.originRules.obeyOrigin, .live,
            "Whether Cache-Control and Expires of the origin override fresh_for, within the two limits below."),
        Setting(
            "cache.min_fresh_for", \.originRules.minFreshFor.wholeSeconds, inWholeSeconds: .zero...decade, .live,
            "Lower limit for the lifetime that an origin sets."),
        Setting(
            "cache.max_fresh_for", \.originRules.maxFreshFor.wholeSeconds, inWholeSeconds: .zero...decade, .live,
            "Upper limit for the lifetime that an origin sets."),
        Setting(
            "cache.max_age", \.lifetimes.maxAge, inWholeSeconds: .zero...decade, .live,
            "max-age of Cache-Control in responses; shorter if the source is fresh for less time."),
        Setting(
            "cache.cdn_max_age", \.lifetimes.cdnMaxAge, inWholeSeconds: .zero...decade, .live, whenUnset: "no fields for CDNs",
            example: "7d",
            "max-age of CDN-Cache-Control. With it, responses also have Cache-Tag and Surrogate-Key, by which a CDN purges a source."
        ),
    ]

    private static let sources = [
        Setting(
            "sources.allow", \.fetch.allow, .live,
            "Patterns of the sources that may be fetched, such as *.example.com or https://cdn.example.com/gifs/."),
        Setting(
            "sources.allow_private", \.fetch.allowPrivate, .live, example: "127.0.0.1, 10.0.0.0/8",
            "Addresses, networks or hosts that may be fetched from although they are private, at the ports below."),
        Setting(
            "sources.nat64_prefixes", \.fetch.translationPrefixes, .live, example: "64:ff9b::/96",
            "NAT64 prefixes of this network (RFC 6052). The server checks the IPv4 address inside an address with one of them."),
        Setting(
            "sources.ports", \.fetch.ports.list, .live,
            "Ports, or ranges of ports such as 8000-8999, that may be connected to."),
        Setting(
            "sources.max_bytes", \.fetch.maxBytes.byteCount, in: .bytes(64) ... .gibibytes(2), .live,
            "Size of the largest source, fetched or uploaded."),
        Setting(
            "sources.formats", \.limits.formats.list, .live,
            "Formats of the sources that are converted: gif, apng, webp, avif (image sequences) and the videos mp4, mov and webm."
        ),
        Setting(
            "sources.connect_timeout", \.fetch.connectTimeout, in: millisecond...day, .live,
            "Time for the DNS lookup, the connection and the TLS handshake together."),
        Setting(
            "sources.timeout", \.fetch.timeout, in: millisecond...day, .live,
            "Time for a whole fetch, redirects included."),
        Setting(
            "sources.stall_timeout", \.fetch.stallTimeout, in: millisecond...day, .live,
            "Time for which a response may be slower than 1000 bytes per second."),
        Setting(
            "sources.max_redirects", \.fetch.maxRedirects, in: 0...50, .live,
            "Redirects that a fetch follows. Each target is checked like the first URL."),
        Setting(
            "sources.concurrency", \.fetch.concurrency, in: 1...4096, unit: "fetches", .live,
            "Fetches that run at the same time."),
        Setting(
            "sources.require_signature", \.signing.isRequired, .live,
            whenUnset: "true if signing.keys holds a key", example: "true",
            "Whether requests must be signed. false accepts unsigned requests while clients change over."),
        Setting(
            "sources.loop_name", \.fetch.loopName, .live,
            "Name of this server in CDN-Loop. Requests that carry it are loops and are refused."),
        Setting(
            "sources.user_agent", \.fetch.userAgent, .live, whenUnset: "gifreel and the version",
            example: "example-gifs (+https://gifs.example.com)",
            "User-Agent of requests to origins. Some origins require contact details in it."),
    ]

    private static let key = SettingFamily(
        name: "signing.keys", example: "blog", members: \Settings.signing.named, new: Settings.Signing.Key())

    private static let signing = [
        Setting(
            "signing.keys", \.signing.keys, isSecret: true, .live,
            "Secrets of 32 random bytes or more, without commas. The first one signs; all of them verify."),
        Setting(
            each: key, "secret", \.secret, isSecret: true, .live, example: "a text of 32 random bytes",
            "Secret of a key with a name, without commas. Keys with names come after the list of those without."),
        Setting(
            each: key, "hosts", \.hosts, .live, whenUnset: "all sources", example: "*.example.com",
            "Patterns of the sources that requests of this key may name, as in sources.allow. Uploads are refused then."),
        Setting(
            each: key, "misses_per_minute", \.missesPerMinute, in: 0...60_000, unit: "per minute", .live, example: "600",
            "Cache misses that all requests of this key together may cause. 0: the limit of each client applies instead."),
        Setting(
            each: key, "burst", \.burst, in: 1...100_000, unit: "misses", .live, example: "100",
            "Cache misses that requests of this key may cause at once after a pause."),
    ]

    /// Limits on the content and rate of requests.
    private static let requests = [
        Setting(
            "block.list", \.blockList, .live, example: "/etc/gifreel/block.list",
            "File of lines pdq:HASH LABEL and sha256:HASH LABEL: sources that are refused with 451. Each reload reads it again."
        ),
        Setting(
            "flashes.limit", \.flashLimit, .live,
            "Animations with over three flashes a second (WCAG 2.3.1): off and warn convert, warn also logs, refuse answers 422, still a still."
        ),
        Setting(
            "options.allow", \.options.allow, .live,
            "Options that unsigned requests may have: any, or presets, which refuses all that change the rendition, except preset, "
                + "codec and width=auto."
        ),
        Setting(
            each: SettingFamily(name: "presets", example: "card", members: \Settings.presets, new: []), "", \.self, .live,
            whenUnset: "no options",
            example: "width=480, quality=50",
            "Options that preset=NAME stands for in requests. Other options of a request override them."),
        Setting(
            "rate_limit.misses_per_minute", \.rateLimit.missesPerMinute, in: 0...60_000, unit: "per minute", .live,
            "Cache misses that one IPv4 address or IPv6 /64 network may cause; 0 sets no limit."),
        Setting(
            "rate_limit.burst", \.rateLimit.burst, in: 1...100_000, unit: "misses", .live,
            "Cache misses that a client may cause at once after a pause."),
        Setting(
            "rate_limit.uploads_per_minute", \.rateLimit.uploadsPerMinute, in: 0...60_000, unit: "per minute", .live,
            "Uploads that one client may send, whether they are converted or not; 0 sets no limit."),
        Setting(
            "rate_limit.upload_burst", \.rateLimit.uploadBurst, in: 1...100_000, unit: "uploads", .live,
            "Uploads that a client may send at once after a pause."),
        Setting(
            "rate_limit.bytes_per_minute", \.rateLimit.bytesPerMinute, in: .mebibytes(1) ... .tebibytes(1), .live,
            whenUnset: "no limit", example: "500MiB",
            "Bytes of responses that one client may receive. A response is not cut; the next requests of the client get 429."),
    ]

    private static let transcode = [
        Setting(
            "transcode.workers", \.transcode.workers, in: 1...256, .restart, whenUnset: "one per processor", example: "2",
            "Conversions that run at once, each in its own process; one more for a client that has none, if another has most."),
        Setting(
            "transcode.queue", \.transcode.queue, in: 0...100_000, unit: "conversions", .restart,
            "Conversions that may wait for a worker, including those whose source is being fetched. Further requests get 503."),
        Setting(
            "transcode.queue_timeout", \.transcode.queueTimeout, in: millisecond...day, .live,
            "Time that a conversion may wait for a worker before the request gets 503."),
        Setting(
            "transcode.wait_timeout", \.transcode.waitTimeout, in: millisecond...day, .live,
            "Time that a request may wait for its rendition in total before it gets 503. A conversion that has begun goes on."),
        Setting(
            "transcode.queue_bytes", \.transcode.queueBytes, in: .mebibytes(1) ... .tebibytes(1), .live,
            "Memory for sources in progress, and for renditions while the disk is full. A fetch reserves sources.max_bytes at first."
        ),
        Setting(
            "sandbox.require", \.requiresSandbox, .restart,
            "Whether the server refuses to start on a kernel without seccomp or landlock. false starts it with a warning."),
    ]

    private static let limits = [
        Setting(
            "limits.side", \.limits.side, in: 1...16384, unit: "pixels", .live,
            "Longest side of a source."),
        Setting(
            "limits.canvas_pixels", \.limits.canvasPixels, in: 1...134_217_728, unit: "pixels", .live,
            "Pixels of one frame."),
        Setting(
            "limits.total_pixels", \.limits.totalPixels, in: 1...1_000_000_000_000_000, unit: "pixels", .live,
            "Pixels of all frames together."),
        Setting(
            "limits.pixels_per_byte", \.limits.pixelsPerByte, in: 1...1_000_000_000, unit: "pixels per byte", .live,
            "Pixels per byte of image data, once all frames exceed canvas_pixels. LZW reaches 1500; real GIFs stay below 100."),
        Setting(
            "limits.frames", \.limits.frames, in: 1...1_000_000, unit: "frames", .live,
            "Number of frames."),
        Setting(
            "limits.duration", \.limits.duration.centiseconds, in: .milliseconds(10)...decade, .live,
            "Sum of all delays. Many GIFs end with a delay of 655.35 s, which means that the animation stops there."),
        Setting(
            "limits.clip_duration", \.limits.clipDuration.centiseconds, in: .milliseconds(10)...day, .live,
            "Duration of a source that is a video: an MP4, QuickTime file or WebM."),
        Setting(
            "limits.cpu", \.allowance.cpu.wholeSeconds, inWholeSeconds: .seconds(1)...day, .live,
            "Processor time of one conversion; one to AV1, AVIF, awebp or WebM may use three times as much."),
        Setting(
            "limits.memory", \.allowance.memory.byteCount, in: .mebibytes(64) ... .tebibytes(1), .live,
            "Memory of one conversion; one to WebM or awebp may use one and a half times as much."),
    ]

    private static let renditions = [
        Setting(
            "renditions.av1", \.renditions.av1, .live,
            "Whether AV1 is encoded only on_request, or also in the background for player pages and for mounts that negotiate."),
        Setting(
            "renditions.av1_after", \.renditions.av1After, in: 0...1_000_000, unit: "responses", .live,
            "Responses with the H.264, or with the source where Accept would select AVIF, before the AV1 is made in the background."
        ),
        Setting(
            "renditions.undither", \.renditions.undither, .live,
            "Whether the palette dither of films is removed from renditions whose requests do not set undither."
        ),
    ]

    private static let mount = SettingFamily(
        name: "mounts", example: "media", members: \Settings.mounts, new: Settings.Mount())

    private static let mounts = [
        Setting(
            each: mount, "origin", \.origin, .live, example: "https://media.example.com/uploads/",
            "URL that the paths of the mount are appended to: http, https, s3://bucket/prefix, or file:///directory."),
        Setting(
            each: mount, "allow", \.allow, .live, whenUnset: "all paths", example: "avatars/, posts/",
            "Paths below the origin that may be requested."),
        Setting(
            each: mount, "sources", \.sources, .live, example: "gif, apng, webp",
            "Formats of the sources: gif, apng (.png and .apng), webp, avif, mp4, mov and webm. With others than gif, renditions are at a.webp.mp4."
        ),
        Setting(
            each: mount, "negotiate", \.negotiate, .live, example: "true",
            "Whether the path of a source answers with a video, an AVIF or a WebP only if Accept names it; other clients get the source itself."
        ),
        Setting(
            each: mount, "on_miss", \.onMiss, .live, whenUnset: "original if the mount negotiates", example: "wait",
            "Answer of a mount that negotiates while a rendition is produced: wait sends the rendition, original the GIF as it arrives."
        ),
        Setting(
            each: mount, "on_error", \.onError, .live, example: "original",
            "Answer of this mount if a GIF cannot be converted: problem, or original for the GIF itself, which no cache may store."
        ),
        Setting(
            each: mount, "fresh_for", \.freshFor, inWholeSeconds: .zero...decade, .live, whenUnset: "cache.fresh_for",
            example: "1h",
            "Time after which the server asks this origin again whether a source has changed."),
        Setting(
            each: mount, "max_age", \.maxAge, inWholeSeconds: .zero...decade, .live, whenUnset: "cache.max_age", example: "1h",
            "max-age of Cache-Control in responses of this mount."),
        Setting(
            each: mount, "require_signature", \.requireSignature, .live, whenUnset: "sources.require_signature",
            example: "false",
            "Whether requests of this mount must be signed."),
        Setting(
            each: mount, "query", \.query, .live, example: "options",
            "Query parameters that are not options: options refuses them, forward sends them to the origin as a part of the URL."
        ),
        Setting(
            each: mount, "headers", \.headers, isSecret: true, .live, whenUnset: "none", example: "Authorization: Bearer …",
            "Fields of requests to this origin, without commas. Its GIFs are then available through mounts only."),
        Setting(
            each: mount, "s3.endpoint", \.s3.endpoint, .live, whenUnset: "store.s3.endpoint", example: "http://127.0.0.1:9000",
            "URL of the service of an s3:// origin. With it, no key of store.s3 is used."),
        Setting(
            each: mount, "s3.region", \.s3.region, .live, whenUnset: "store.s3.region", example: "eu-central-1",
            "Region that requests for an s3:// origin are signed for."),
        Setting(
            each: mount, "s3.path_style", \.s3.pathStyle, .live, whenUnset: "store.s3.path_style", example: "true",
            "Whether the bucket of an s3:// origin is a part of the path and not of the host."),
        Setting(
            each: mount, "s3.access_key", \.s3.accessKey, isSecret: true, .live, whenUnset: "store.s3.access_key",
            example: "AKIA…",
            "Access key for an s3:// origin."),
        Setting(
            each: mount, "s3.secret_key", \.s3.secretKey, isSecret: true, .live, whenUnset: "store.s3.secret_key", example: "…",
            "Secret key for an s3:// origin."),
    ]

    private static let store = [
        Setting(
            "store.s3.endpoint", \.store.s3.endpoint, .restart, whenUnset: "Amazon S3 in the region",
            example: "http://127.0.0.1:9000",
            "URL of an S3-compatible service that keeps renditions for all nodes."),
        Setting(
            "store.s3.bucket", \.store.s3.bucket, .restart, whenUnset: "no shared store", example: "gifreel",
            "Bucket of the shared store."),
        Setting(
            "store.s3.region", \.store.s3.region, .restart,
            "Region that requests are signed for. Services without regions expect us-east-1."),
        Setting(
            "store.s3.prefix", \.store.s3.prefix, .restart, example: "renditions",
            "Prefix of the keys of all objects."),
        Setting(
            "store.s3.access_key", \.store.s3.accessKey, isSecret: true, .restart,
            whenUnset: "AWS_ACCESS_KEY_ID, or the keys of a role",
            example: "AKIA…",
            "Access key of the shared store."),
        Setting(
            "store.s3.secret_key", \.store.s3.secretKey, isSecret: true, .restart,
            whenUnset: "AWS_SECRET_ACCESS_KEY, or the keys of a role",
            example: "…",
            "Secret key of the shared store. AWS_SESSION_TOKEN is used with the keys from the environment."),
        Setting(
            "store.s3.path_style", \.store.s3.pathStyle, .restart,
            "Whether the bucket is a part of the path and not of the host."),
        Setting(
            "store.s3.timeout", \.store.s3.timeout, in: millisecond...hour, .restart,
            "Time for one upload or deletion, in addition to the time for its bytes."),
        Setting(
            "store.s3.lookup_timeout", \.store.s3.lookupTimeout, in: millisecond...hour, .restart,
            "Time that a miss waits for the shared store."),
        Setting(
            "store.s3.queue_bytes", \.store.s3.queueBytes, in: .mebibytes(1) ... .tebibytes(1), .restart,
            "Size of the renditions that wait on disk to be uploaded. The oldest are dropped beyond it."),
        Setting(
            "store.s3.drain_timeout", \.store.s3.drainTimeout, in: .zero...hour, .live,
            "Time that a stop waits until the writes that are queued for the shared store are sent."),
    ]

    private static let cluster = [
        Setting(
            "cluster.redis", \.cluster.redis, isSecret: true, .restart, whenUnset: "this node works alone",
            example: "redis://127.0.0.1:6379",
            "URL of a Redis or Valkey server that coordinates nodes: redis://, rediss:// or unix:."),
        Setting(
            "cluster.name", \.cluster.name, .restart,
            "Name of the cluster, which separates the keys of several clusters on one server."),
        Setting(
            "cluster.node", \.cluster.node, .restart, whenUnset: "the host's name", example: "node-1",
            "Name of this node in /cache and in the log."),
        Setting(
            "cluster.catch_up", \.cluster.catchUp, in: .zero...hour, .restart,
            "Time after a start in which /readyz is 503 until this node has applied the purges that it missed."),
        Setting(
            "cluster.alone", \.cluster.timings.aloneLimit, in: .seconds(1)...decade, .restart,
            "Time without the server after which the origin is asked again before a rendition is used, if it answers."),
    ]

    private static let pages = [
        Setting(
            "pages.home", \.pages.home, .live,
            "Whether / serves a page for trying the service."),
        Setting(
            "pages.site_name", \.pages.siteName, .live, whenUnset: "none", example: "Example GIFs",
            "og:site_name of player pages, provider_name of oEmbed: the name of the site in link previews."),
        Setting(
            "pages.description", \.pages.description, .live, whenUnset: "none", example: "Animations of example.com",
            "og:description of player pages: the text below the title in link previews."),
        Setting(
            "pages.twitter_site", \.pages.twitterSite, .live, whenUnset: "none", example: "@example",
            "twitter:site of player pages: the account of the site on X."),
        Setting(
            "admin.token", \.admin.token, isSecret: true, .live, whenUnset: "admin requests are off",
            "Bearer token of PURGE, /cache, /explain, /prewarm, /purges and /top: 16 random bytes or more."),
        Setting(
            "admin.previous_token", \.admin.previousToken, isSecret: true, .live, whenUnset: "one token is valid",
            "Second token that is valid while clients change over to admin.token."),
    ]

    private static let hook = SettingFamily(
        name: "purge.hooks", example: "cdn", members: \Settings.purge.hooks, new: Settings.Purge.Hook())

    private static let purge = [
        Setting(
            each: hook, "url", \.url, .live, example: "https://api.example.com/purge",
            "URL of a request after each purge. With {url} or {tag} in it, one request is sent for each of them."),
        Setting(
            each: hook, "method", \.method, .live, example: "POST",
            "Method of the request."),
        Setting(
            each: hook, "headers", \.headers, isSecret: true, .live, whenUnset: "none", example: "Authorization: Bearer …",
            "Fields of the request, without commas."),
        Setting(
            each: hook, "body", \.body, .live, whenUnset: "an object with scope and urls and tags",
            example: "{\\\"tags\\\":{tags}}",
            "Body of the request. {urls}, {tags}, {url}, {tag} and {scope} stand for JSON values."),
        Setting(
            each: hook, "scopes", \.scopes, .live, example: "url, prefix, host, object, all",
            "Purges after which the request is sent: of one source, a prefix, a host, a stored object, or of everything."),
    ]

    /// Work for which no client waits.
    private static let work = [
        Setting(
            "prewarm.concurrency", \.prewarm.concurrency, in: 1...256, .restart, whenUnset: "half the workers", example: "1",
            "Renditions of prewarm lists that are made at the same time, at lower priority than requests."),
        Setting(
            "prewarm.max_urls", \.prewarm.maxURLs, in: 1...1_000_000, unit: "renditions", .restart,
            "Renditions that may wait to be prewarmed. Longer lists are refused."),
        Setting(
            "async.max_statuses", \.maxStatuses, in: 0...1_000_000, unit: "statuses", .live,
            "Requests with Prefer: respond-async that run or ended in the last ten minutes; 0 ignores the preference."),
        Setting(
            "webhooks.allow", \.webhooks.allow, .live, whenUnset: "webhooks are off", example: "hooks.example.com",
            "Patterns of the receivers that callback may name. Their addresses are checked like those of sources. "
                + "Needs webhooks.key."),
        Setting(
            "webhooks.key", \.webhooks.key, isSecret: true, .live, example: "…",
            "Secret of 32 random bytes or more that signs webhooks."),
    ]

    private static let observation = [
        Setting(
            "metrics.allow", \.metrics.allow.patterns, .live,
            "Addresses, networks or unix (the Unix socket) that may read /metrics without the admin token."),
        Setting(
            "metrics.hosts", \.metrics.hosts, .live, whenUnset: "addresses and local names",
            example: "*.monitoring.example.com",
            "Names of this server under which metrics.allow applies, besides addresses, local names and the host of server.public_url."
        ),
        Setting(
            "tracing.endpoint", \.tracing.endpoint, .restart, whenUnset: "no traces are exported",
            example: "http://127.0.0.1:4318/v1/traces",
            "URL of a collector that receives the traces of cache misses (OTLP over HTTP, in JSON)."),
        Setting(
            "tracing.headers", \.tracing.headers, isSecret: true, .restart, whenUnset: "none",
            example: "Authorization: Bearer …",
            "Fields of requests to the collector, without commas."),
        Setting(
            "tracing.sample", \.tracing.sample, in: 0...100, unit: "percent", .restart,
            "Share of the requests that are traced. A traceparent from a trusted proxy decides instead."),
        Setting(
            "tracing.queue", \.tracing.queue, in: 1...1_000_000, unit: "spans", .restart,
            "Spans that may wait for the collector. Further ones are dropped and counted."),
        Setting(
            "log.level", \.log.level, .live,
            "Lowest level that is logged. Requests are logged at info."),
        Setting(
            "log.format", \.log.format, .restart,
            "Format of the log."),
        Setting(
            "log.client", \.http.recordsClientFields, .restart,
            "Whether the access log has Referer and User-Agent of requests."),
    ]
}

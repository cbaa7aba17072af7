package import Cache
package import Fetch
package import HTTP
package import Logging
package import Media
package import Prewarm
package import Renditions
package import Sandbox
package import Web

/// Everything about the service that can be set, each room's part in its own terms.
package struct ServiceConfiguration: Sendable {
    package var http = HTTPServerConfiguration()
    package var cache = CacheConfiguration()
    package var fetch = FetchConfiguration()
    package var pool = WorkerPoolConfiguration(workers: 1, threadsAlone: 1)
    package var limits = MediaLimits()
    package var allowance = WorkerJob.Allowance()
    /// How long a conversion may wait for a worker before who asked for it gets 503.
    package var queueTimeout: Duration = .seconds(20)
    /// Bytes of GIFs that all conversions under way may hold in memory; see ``MissAdmission``.
    package var queueBytes = 1 << 30
    /// What origins' `Cache-Control` and `Expires` may say.
    package var originRules = OriginRules()
    /// Refuses to start where the kernel cannot confine the workers.
    package var requiresSandbox = false
    /// Seconds of `max-age` in the answers' `Cache-Control`.
    package var maxAge = 86_400
    /// Time after SIGTERM in which `/readyz` is 503 and requests are still answered, before draining begins.
    package var shutdownDelay: Duration = .zero
    /// `Access-Control-Allow-Origin`; nil sends none.
    package var allowOrigin: String? = "*"
    /// A file to write the TCP port into once the server listens.
    package var portFile: String?
    /// The address under which clients reach the server, without a slash at its end; nil takes that of the request.
    package var publicURL: String?
    /// Whether the page at `/` is there.
    package var hasHomePage = true
    /// Origins by the name of their mount.
    package var mounts: [String: Mount] = [:]
    /// What requests are signed with; empty where they are not.
    package var signingKeys = SigningKeys()
    /// Whether a request without a signature is refused.
    package var requiresSignature = false
    /// How many misses a client may cause; nil for any number.
    package var rateLimit: RateLimit?
    /// The token of admin requests; nil turns them off.
    package var adminToken: String?
    /// How much may be prewarmed.
    package var prewarm = PrewarmQueue.Limits(concurrency: 1, urls: 50_000)
    /// Who may read `/metrics` without the admin token. Default: nobody.
    package var metricsReaders = ClientList()
    package var logLevel = Logger.Level.info
    package var logFormat = LogFormat.text

    /// How log lines look.
    package enum LogFormat: String, Sendable, CaseIterable {
        case text
        case json
    }

    package init() {}
}

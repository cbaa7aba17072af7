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
package import Web

/// The configuration of each target, composed from the settings.
package struct ServiceConfiguration: Sendable {
    package var http: HTTPServerConfiguration
    package var web: WebPolicy
    package var cache: CacheConfiguration
    package var fetch: FetchConfiguration
    package var pool: WorkerPoolConfiguration
    package var limits: MediaLimits
    package var allowance: WorkerAllowance
    /// Time that a conversion may wait for a worker before the request gets 503.
    package var queueTimeout: Duration
    /// Time that a request may wait for its rendition in all before it gets 503.
    package var waitTimeout: Duration
    /// Bytes of sources that all conversions in progress may hold in memory; see ``Admission``.
    package var queueBytes: Int
    /// The limits for `Cache-Control` and `Expires` of origins.
    package var originRules: OriginRules
    /// The options of renditions that requests leave out.
    package var defaults: RenditionDefaults
    /// The sources that are refused; nil for none.
    package var blocks: BlockList?
    package var flashes: FlashLimit
    /// Whether the server refuses to start on a kernel that cannot confine the workers.
    package var requiresSandbox: Bool
    /// Time after SIGTERM in which `/readyz` is 503 and requests are still answered, before draining begins.
    package var shutdownDelay: Duration
    /// The file that receives the TCP port once the server listens.
    package var portFile: String?
    /// Statuses of requests that do not wait.
    package var maxStatuses: Int
    package var webhooks: Webhooks.Policy
    /// Sentences about secrets that may be guessed.
    package var secretWarnings: [String]
    /// Requests that tell CDNs about purges.
    package var purgeHooks: [PurgeHook]
    /// The time for which a stop waits for queued writes to the shared store.
    package var storeDrainTimeout: Duration
    /// The limits of prewarm jobs.
    package var prewarm: PrewarmQueue.Limits
    /// The shared store; nil without one.
    package var store: SharedStoreConfiguration?
    /// The part of this node in a cluster; nil if it works alone.
    package var cluster: ClusterConfiguration?
    /// Time after a start that this node waits for the purges that it missed.
    package var catchUpLimit: Duration
    /// Where traces are sent; nil exports none.
    package var tracing: TracingConfiguration?
    package var logLevel: Logger.Level
    package var logFormat: Settings.Log.Format
}

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
    /// Sentences about secrets that may be guessed.
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

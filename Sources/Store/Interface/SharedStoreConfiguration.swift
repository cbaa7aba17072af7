package struct SharedStoreConfiguration: Sendable {
    package var bucket: S3Bucket
    let keys: KeySpace
    /// The total time limit of a lookup during a cache miss, including retries.
    package var lookupTimeout: Duration
    /// The time limit of a request that no client waits for: an upload, a delete, a page of a list. An upload has more time in
    /// proportion to its length, see ``uploadRate``.
    package var timeout: Duration
    /// The lowest expected rate of an upload, in bytes per second.
    package var uploadRate = 256 << 10
    /// Requests that run at once, and connections that stay open.
    package var connections = 64
    /// The extensions of renditions. Removing an object deletes all of them.
    package var fileExtensions: [String] = []
    /// The outbox, for a store that is written to.
    package var outbox: OutboxConfiguration
    /// Consecutive outages after which the circuit breaker opens.
    package var outagesBeforeSuspension = 3
    /// The pause between opening the circuit breaker and the first probe. It doubles with each failed probe.
    package var suspension: Duration = .milliseconds(500)
    /// The longest pause between two probes.
    package var longestSuspension: Duration = .seconds(3)

    /// - Parameter prefix: The prefix of all keys; empty for none.
    /// - Throws: ``StoreConfigurationError`` if the prefix cannot be part of a key.
    package init(
        bucket: S3Bucket, prefix: String, timeout: Duration, lookupTimeout: Duration, outbox: OutboxConfiguration
    ) throws(StoreConfigurationError) {
        self.bucket = bucket
        keys = try KeySpace(prefix: prefix)
        self.timeout = timeout
        self.lookupTimeout = lookupTimeout
        self.outbox = outbox
    }
}

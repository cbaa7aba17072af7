/// The settings of a ``SharedStore``.
package struct SharedStoreConfiguration: Sendable {
    /// The bucket that keeps the renditions.
    package var bucket: S3Bucket
    /// What all keys begin with. Default: nothing.
    package var prefix = ""
    /// The time limit of a lookup on the path of a miss, in all, retries included. Default: 250 ms.
    package var lookupTimeout: Duration = .milliseconds(250)
    /// The time limit of a request that no client waits for: an upload, a delete, a page of a list. An upload has more time in
    /// proportion to its length, see ``uploadRate``. Default: 10 s.
    package var timeout: Duration = .seconds(10)
    /// The lowest rate at which an upload is expected to go on, in bytes per second. Default: 256 KiB/s.
    package var uploadRate = 256 << 10
    /// Requests that run at once, and connections that stay open. Default: 64.
    package var connections = 64
    /// The extensions of renditions; the removal of one deletes all of them. Default: none.
    package var fileExtensions: [String] = []
    /// The outbox, for a store that is written to.
    package var outbox = OutboxConfiguration()
    /// Consecutive outages after which the circuit breaker opens. Default: 3.
    package var outagesBeforeSuspension = 3
    /// The pause between opening the circuit breaker and the first probe. It doubles with each failed probe. Default: 500 ms.
    package var suspension: Duration = .milliseconds(500)
    /// The longest pause between two probes. Default: 3 s.
    package var longestSuspension: Duration = .seconds(3)

    package init(bucket: S3Bucket) {
        self.bucket = bucket
    }

    /// Validates every setting.
    ///
    /// - Throws: ``StoreConfigurationError`` for the first setting that cannot work.
    package func validate() throws(StoreConfigurationError) {
        _ = try KeySpace(prefix: prefix)
        let hour = Duration.seconds(3600)
        for (name, value) in [("lookup_timeout", lookupTimeout), ("timeout", timeout)] {
            try check(value >= .milliseconds(1) && value <= hour, name, "must be from 1 ms to an hour")
        }
        try check((1...(1 << 30)).contains(uploadRate), "upload_rate", "must be from 1 byte to 1 GiB per second")
        try check((1...4096).contains(connections), "connections", "must be from 1 to 4096")
        try check((1...1000).contains(outagesBeforeSuspension), "outages_before_suspension", "must be from 1 to 1000")
        try check(
            suspension > .zero && suspension <= longestSuspension && longestSuspension <= hour, "suspension",
            "must be over 0, at most the longest suspension, and that at most an hour")
        try check((1...1_000_000).contains(outbox.maxEntries), "queue.max_entries", "must be from 1 to 1,000,000")
        try check((1...(1 << 50)).contains(outbox.maxBytes), "queue.max_bytes", "must be from 1 byte to 1 PiB")
        try check((1...16).contains(outbox.uploads), "queue.uploads", "must be from 1 to 16")
    }

    private func check(_ holds: Bool, _ setting: String, _ reason: String) throws(StoreConfigurationError) {
        if !holds { throw StoreConfigurationError(setting, reason) }
    }
}

/// The settings of the outbox.
package struct OutboxConfiguration: Sendable, Equatable {
    /// The directory of the renditions that wait, which belongs to one process. It should be on the file system of the cache, so that
    /// they are linked and not copied.
    package var directory = "outbox"
    /// The largest number of queued renditions. Default: 10,000. Deletions do not count.
    package var maxEntries = 10_000
    /// The largest total length of queued renditions in bytes. Default: 2 GiB.
    package var maxBytes = 2 << 30
    /// Writes that are sent at once. Default: 2.
    package var uploads = 2
    /// The pause of a sender after a failed write, and of the write before its next attempt. Both double with each further failure.
    /// Default: 250 ms.
    package var pause: Duration = .milliseconds(250)
    /// The longest pause of a sender after a failed write; that of the write is 30 times as long. Default: 2 s.
    package var longestPause: Duration = .seconds(2)

    package init() {}
}

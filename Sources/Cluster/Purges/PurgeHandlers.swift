/// What the owner of the local cache does for the purge stream.
package struct PurgeHandlers: Sendable {
    /// Purges the local cache, durably, and returns what was removed. Work that began before must not be stored after it.
    ///
    /// Nil if the purge is in force only until the next start. The node then does not acknowledge it, and repeats it after a restart.
    package let purgeLocalCache: @Sendable (ClusterPurge) async -> PurgeCounts?
    /// Makes every alias expire, so that the origin is asked before it is used again, and drops what a former process has not sent
    /// to other nodes: purges may have been missed.
    package let revalidateEverything: @Sendable () async -> Void

    package init(
        purgeLocalCache: @escaping @Sendable (ClusterPurge) async -> PurgeCounts?,
        revalidateEverything: @escaping @Sendable () async -> Void
    ) {
        self.purgeLocalCache = purgeLocalCache
        self.revalidateEverything = revalidateEverything
    }
}

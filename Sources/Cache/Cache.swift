internal import Synchronization
internal import SystemIO

/// The store of finished renditions: content-addressed files, an index, a table of what is in use, eviction and purges.
///
/// **Threads.** ``hotAlias(_:)``, ``hotObject(_:)``, ``epoch(for:)``, ``freshness(of:)`` and ``statistics()`` never wait for
/// a disk and may be called on an I/O thread. The `async` methods do their work on threads of the cache and hold up neither
/// the caller's thread nor Swift's pool. ``init(configuration:clock:)``, ``stage(expecting:)`` and ``close()`` block for as
/// long as a few system calls take.
///
/// **Promises.** What is given out is whole and as it was published: its length is compared whenever it is opened, its
/// SHA-256 when it is first opened after a start. After a purge has returned, nothing older that it covers is given out,
/// whatever was in flight. A rendition whose file is open stays readable when it is evicted or purged. Where the disk fails,
/// a look-up is a miss and a publish is «not stored», never an error.
///
/// Must be closed with ``close()``; its threads keep it alive until then.
package final class Cache: Sendable {
    package let configuration: CacheConfiguration
    let clock: CacheClock
    private let currentStore: Mutex<Store>
    let hotAliases: HotTable<AliasKey>
    let hotObjects: HotTable<ObjectID>
    let purges = PurgeLog()
    let visited = VisitedObjects()
    let verified = VerifiedObjects()
    let counters = CacheCounters()
    let lookups: WorkThreads
    let publishers: WorkThreads
    /// Of their own, so that a purge never waits behind publishes.
    let purgers: WorkThreads
    let housekeeping: RepeatingThread
    let scrubber = Mutex(Scrubber())
    let report: @Sendable (CacheEvent) -> Void
    /// Called at each ``Step``; nothing but tests sets it.
    private let onStep: (@Sendable (Step) -> Void)?
    private let isClosed = Atomic(false)

    /// Opens the directory, making what is missing, and locks it. Returns at once even where the index has to be made anew:
    /// that goes on in the background, and until it is done look-ups may miss what is there.
    ///
    /// - Parameter report: Told of what an operator should know, on any thread; it must not block.
    /// - Throws: ``CacheError/invalidSetting(name:reason:)``, ``CacheError/directoryInUse(path:holder:)``,
    ///   ``CacheError/directoryUnusable(path:cause:)``, ``CacheError/indexUnusable(path:cause:)``.
    package convenience init(
        configuration: CacheConfiguration, clock: CacheClock = .system,
        report: @escaping @Sendable (CacheEvent) -> Void = { _ in }
    ) throws(CacheError) {
        try self.init(configuration: configuration, clock: clock, report: report, onStep: nil)
    }

    init(
        configuration: CacheConfiguration, clock: CacheClock, report: @escaping @Sendable (CacheEvent) -> Void = { _ in },
        onStep: (@Sendable (Step) -> Void)?
    ) throws(CacheError) {
        try configuration.validate()
        self.onStep = onStep
        self.configuration = configuration
        self.clock = clock
        self.report = report
        let store = try Store(path: configuration.directory, readers: configuration.lookupThreads, report: report)
        currentStore = Mutex(store)
        if let free = try? store.directory.freeBytes(), free < configuration.minFreeBytes {
            report(.freeSpaceBelowMinimum(free: free, minimum: configuration.minFreeBytes))
        }
        hotAliases = HotTable(limit: configuration.hotEntries)
        hotObjects = HotTable(limit: configuration.hotEntries)
        lookups = WorkThreads(count: configuration.lookupThreads, limit: configuration.queueLimit, name: "cache-lookup")
        publishers = WorkThreads(count: configuration.publishThreads, limit: configuration.queueLimit, name: "cache-publish")
        purgers = WorkThreads(count: 1, limit: configuration.queueLimit, name: "cache-purge")
        housekeeping = RepeatingThread(interval: configuration.housekeepingInterval)
        housekeeping.start(name: "cache-keeper") { self.keepHouse() }
    }

    /// Ends the threads after what they have begun, writes down that all is in order, and unlocks the directory. Look-ups
    /// are misses from here on, publishes unstored. Blocks; not to be called on one of the cache's threads. May be called
    /// twice.
    package func close() {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        housekeeping.close()
        lookups.close()
        purgers.close()
        publishers.close()
        hotAliases.removeAll { _ in true }
        hotObjects.removeAll { _ in true }
        store.close()
    }

    /// The open directory; another one after the first was removed under the cache.
    var store: Store { currentStore.withLock { $0 } }

    func openStore() throws(CacheError) -> Store {
        try Store(path: configuration.directory, readers: configuration.lookupThreads, report: report)
    }

    @inline(__always)
    func reached(_ step: Step) {
        onStep?(step)
    }

    func replaceStore(with new: Store) {
        currentStore.withLock { $0 = new }
    }

    /// How far the rendition's alias may be trusted now; a rendition found by its id is always fresh, since its id is its
    /// content.
    package func freshness(of rendition: CachedRendition) -> Freshness {
        guard let times = rendition.aliasTimes else { return .fresh(remaining: configuration.freshFor) }
        return Freshness(
            fetchedAt: times.fetchedAt, freshFor: times.freshFor ?? configuration.freshFor, staleFor: configuration.staleFor,
            now: clock.unixSeconds())
    }

    /// What the cache holds and has done.
    package func statistics() -> CacheStatistics {
        let store = store
        let totals = store.currentTotals
        return CacheStatistics(
            objects: totals.objects, bytes: totals.bytes, limitBytes: configuration.maxBytes,
            hotHits: hotAliases.hits + hotObjects.hits, diskHits: counters.diskHits.current, misses: counters.misses.current,
            refused: counters.refused.current, published: counters.published.current,
            publishedBytes: counters.publishedBytes.current, unstored: counters.unstored.current,
            evictions: counters.evictions.current, evictedBytes: counters.evictedBytes.current,
            purges: counters.purges.current, purged: counters.purged.current, corrupt: counters.corrupt.current,
            orphans: counters.orphans.current, rebuilds: store.rebuilds.current, isRebuilding: store.isCatchingUp,
            isStoring: counters.isStoring.load(ordering: .relaxed))
    }
}

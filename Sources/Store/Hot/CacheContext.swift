internal import Synchronization
internal import SystemIO

/// The state shared by the parts of a ``Cache``. Any thread.
final class CacheContext: Sendable {
    /// The configuration at startup. ``maxBytes`` and ``minFreeBytes`` may change later.
    let configuration: CacheConfiguration
    private let limits: Mutex<(maxBytes: Int64, minFreeBytes: Int64)>
    let clock: TimeSource
    let hot: HotRenditions
    let purges: PurgeIndex
    /// This node's estimate of the cluster's clock.
    let sharedClock: SharedClock
    let verified = VerifiedObjects()
    /// The work counters. Stored contents and hits of the hot tables are counted elsewhere.
    let counters = Meter(CacheStatistics())
    /// Runs housekeeping; woken when there is work for it.
    let housekeeping: RepeatingThread
    let index: CacheIndex
    /// Whether, since the last round of housekeeping, the disk refused a file although statvfs(3) showed space.
    let isOverQuota = Atomic(false)
    /// The size of the largest file that the free space did not admit since the last round of housekeeping.
    let refusedBytes = Atomic<Int64>(0)
    /// Observers that apply each purge to work in progress and to remembered failures. They may retain the cache.
    let purgeObservers = Mutex<[@Sendable (PurgeScope) -> Void]>([])
    /// Receives the renditions that are stored after their publishers have returned. It may retain the cache.
    let lateObserver = Mutex<(@Sendable (CachedRendition) -> Void)?>(nil)
    let report: @Sendable (CacheEvent) -> Void
    /// Called at each ``Step``; only tests set it.
    private let onStep: (@Sendable (Step) -> Void)?

    init(
        configuration: CacheConfiguration, owners: [Ledger.Tables], clock: TimeSource,
        report: @escaping @Sendable (CacheEvent) -> Void,
        onStep: (@Sendable (Step) -> Void)?
    ) throws(CacheError) {
        let housekeeping = RepeatingThread(every: configuration.housekeepingInterval)
        let sharedClock = SharedClock(clock)
        let purges = PurgeIndex(now: { sharedClock.earliest })
        (self.sharedClock, self.purges) = (sharedClock, purges)
        index = try CacheIndex(
            path: configuration.directory, owners: owners, purges: purges, clock: clock, report: report,
            onFailure: { housekeeping.wake() })
        self.housekeeping = housekeeping
        self.configuration = configuration
        limits = Mutex((configuration.maxBytes, configuration.minFreeBytes))
        self.clock = clock
        self.report = report
        self.onStep = onStep
        hot = HotRenditions(limit: configuration.hotEntries, purges: purges, onStep: onStep)
        if let free = try? index.directory.space().freeBytes, free < configuration.minFreeBytes {
            report(.freeSpaceBelowMinimum(free: free, minimum: configuration.minFreeBytes))
        }
    }

    var maxBytes: Int64 { limits.withLock(\.maxBytes) }

    var minFreeBytes: Int64 { limits.withLock(\.minFreeBytes) }

    /// Changes the limits. Housekeeping evicts what exceeds them.
    func setLimits(maxBytes: Int64, minFreeBytes: Int64) {
        limits.withLock { $0 = (maxBytes, minFreeBytes) }
        housekeeping.wake()
    }

    @inline(__always)
    func reached(_ step: Step) {
        onStep?(step)
    }
}

/// The objects whose bytes were compared with their SHA-256 since the start, so that they are hashed only once.
///
/// Bounded: when it is full, it is emptied, and objects are hashed again. Any thread.
final class VerifiedObjects: Sendable {
    private static let limit = 1 << 18

    private let sequences = Mutex<Set<Int64>>([])

    func contains(_ sequence: Int64) -> Bool {
        sequences.withLock { $0.contains(sequence) }
    }

    func insert(_ sequence: Int64) {
        sequences.withLock { sequences in
            if sequences.count >= Self.limit { sequences.removeAll() }
            sequences.insert(sequence)
        }
    }

    func removeAll() {
        sequences.withLock { $0 = [] }
    }
}

/// Where a ``Cache`` does its blocking work.
struct CacheThreads: Sendable {
    /// Creates the executor of one kind of work.
    ///
    /// - Parameters: The number of closures that run at the same time, the maximum number that wait, and a name of at most 15
    ///   bytes.
    let create: @Sendable (_ count: Int, _ limit: Int, _ name: String) -> any BlockingWork
    /// Whether housekeeping has a thread of its own. Otherwise the owner of the cache runs ``Housekeeper/runRound()``.
    let includeHousekeeping: Bool

    static let system = CacheThreads(
        create: { WorkThreads(count: $0, limit: $1, name: $2) }, includeHousekeeping: true)
}

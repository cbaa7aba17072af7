internal import SystemIO

/// Where a ``Cache`` does its blocking work.
struct CacheThreads: Sendable {
    /// Creates the executor of one kind of work.
    ///
    /// - Parameters: The number of closures that run at the same time, the maximum number that wait, and a name of at most 15
    ///   bytes.
    let create: @Sendable (_ count: Int, _ limit: Int, _ name: String) -> any BlockingWork
    /// Whether housekeeping has a thread of its own. Otherwise the owner of the cache runs ``Housekeeper/runRound()``.
    let includeHousekeeping: Bool

    /// Threads of the operating system.
    static let system = CacheThreads(
        create: { WorkThreads(count: $0, limit: $1, name: $2) }, includeHousekeeping: true)
}

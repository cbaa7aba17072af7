import SystemIO

@testable import Store

extension Cache {
    /// Opens a cache without a housekeeping thread: the test runs each round itself, with ``Housekeeper/runRound()``. The test must
    /// close the cache.
    static func openWithoutHousekeeping(_ configuration: CacheConfiguration, clock: TimeSource = .system) throws -> Cache {
        try Cache(
            configuration: configuration, clock: clock,
            threads: CacheThreads(create: CacheThreads.system.create, includeHousekeeping: false), onStep: nil)
    }
}

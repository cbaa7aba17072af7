/// The sums over outcomes.
package struct PrewarmTotals: Sendable, Hashable {
    package private(set) var hits = 0
    package private(set) var new = 0
    package private(set) var failed = 0
    /// Bytes of renditions in the cache now.
    package private(set) var bytes = 0
    /// Bytes of their GIFs.
    package private(set) var sourceBytes = 0
    /// Bytes by which they are smaller than these.
    package private(set) var saved = 0

    package init() {}

    /// Entries that are done with, failed ones included.
    package var done: Int { hits + new + failed }

    package mutating func add(_ outcome: PrewarmOutcome) {
        switch outcome.kind {
        case .hit: hits += 1
        case .new: new += 1
        case .failed: failed += 1
        }
        bytes += outcome.bytes
        sourceBytes += outcome.sourceBytes
        saved += outcome.saved
    }
}

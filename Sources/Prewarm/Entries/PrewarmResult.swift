package import Fleet
package import Renditions

extension PrewarmOutcome {
    package typealias Describe = @Sendable (RenditionError) -> PrewarmOutcome
}

package struct PrewarmResult: Sendable, Hashable {
    package var entry: PrewarmEntry
    package var outcome: PrewarmOutcome

    package init(_ entry: PrewarmEntry, _ outcome: PrewarmOutcome) {
        self.entry = entry
        self.outcome = outcome
    }
}

package struct PrewarmTotals: Sendable, Hashable {
    package private(set) var hits = 0
    package private(set) var new = 0
    package private(set) var failed = 0
    /// Bytes of the renditions that are in the cache.
    package private(set) var bytes = 0
    package private(set) var sourceBytes = 0
    /// The bytes by which the renditions are smaller than their sources.
    package private(set) var saved = 0

    package init() {}

    /// The number of finished entries, failures included.
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

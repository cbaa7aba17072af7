internal import Synchronization

/// The clock that the nodes of a cluster have in common, as far as this node knows it: two bounds, carried on by the machine's monotonic
/// clock.
///
/// Wall clocks of nodes may differ by minutes, and so may those of a server and of the replica that takes over from it. The nodes
/// therefore define the time: one that reconnects keeps the server to the bounds that it has carried on. Without a sample, the bounds are
/// the wall clock and ``uncertainty`` around it. Any thread.
package final class SharedClock: Sendable {
    /// The cluster's time at some moment between two times of the monotonic clock. All in milliseconds.
    package struct Sample: Sendable, Equatable {
        package let earliest: Int64
        package let latest: Int64
        package let monotonic: Int64

        package init(earliest: Int64, latest: Int64, monotonic: Int64) {
            self.earliest = earliest
            self.latest = latest
            self.monotonic = monotonic
        }
    }

    /// The difference between wall clocks that a node without a sample expects: 10 minutes.
    private static let uncertainty: Int64 = 600_000
    /// Milliseconds after which two monotonic clocks differ by one at most.
    private static let drift: Int64 = 2000

    private let time: TimeSource
    private let sample = Mutex<Sample?>(nil)

    package init(_ time: TimeSource) {
        self.time = time
    }

    /// Milliseconds of the monotonic clock.
    package var monotonic: Int64 { Int64(clamping: time.monotonicNanoseconds() / 1_000_000) }

    /// The earliest and the latest time that it may be now, in milliseconds since 1970.
    package var bounds: (earliest: Int64, latest: Int64) {
        let now = monotonic
        guard let sample = sample.withLock({ $0 }) else {
            return (time.unixMilliseconds - Self.uncertainty, time.unixMilliseconds + Self.uncertainty)
        }
        return Self.carry(sample, to: now)
    }

    /// The earliest time that it may be now.
    package var earliest: Int64 { bounds.earliest }

    /// The latest time that it may be now.
    package var latest: Int64 { bounds.latest }

    /// The bounds from a sample; nil before the first one. Only they may move the cluster's clock.
    package var known: (earliest: Int64, latest: Int64)? {
        let now = monotonic
        return sample.withLock { $0 }.map { Self.carry($0, to: now) }
    }

    private static func carry(_ sample: Sample, to now: Int64) -> (earliest: Int64, latest: Int64) {
        let elapsed = max(0, now - sample.monotonic)
        let error = elapsed / drift + (elapsed > 0 ? 1 : 0)
        return (sample.earliest + elapsed - error, sample.latest + elapsed + error)
    }

    /// Takes over what the server said.
    ///
    /// - Parameters:
    ///   - milliseconds: The cluster's time at some moment between `start` and now.
    ///   - start: ``monotonic`` before the question.
    package func set(_ milliseconds: Int64, askedAt start: Int64) {
        let now = monotonic
        // The server said it at the end of its millisecond at the latest.
        let new = Sample(earliest: milliseconds, latest: milliseconds + 1 + max(0, now - start), monotonic: now)
        sample.withLock { sample in
            guard let old = sample.map({ Self.carry($0, to: now) }) else { return sample = new }
            let (earliest, latest) = (max(old.earliest, new.earliest), min(old.latest, new.latest))
            // Bounds that do not meet: the cluster's clock was set. The server's is the one that the others know.
            sample = earliest <= latest ? Sample(earliest: earliest, latest: latest, monotonic: now) : new
        }
    }

    /// Takes over what a former process of this machine knew, unless the server was asked since.
    package func restore(_ former: Sample) {
        sample.withLock { sample in
            if sample == nil, former.earliest <= former.latest, former.monotonic <= monotonic { sample = former }
        }
    }

    /// What to keep for ``restore(_:)``; nil before the first sample.
    package var saved: Sample? { sample.withLock { $0 } }
}

internal import Synchronization

/// The common clock of a cluster's nodes: this node's bounds on it, advanced by the machine's monotonic clock.
///
/// Wall clocks of nodes may differ by minutes, and so may those of a server and of the replica that replaces it. The nodes
/// therefore define the time: a node that reconnects holds the server to the bounds that it has maintained. Without a sample,
/// the bounds are the wall clock ± ``uncertainty``. Any thread.
package final class SharedClock: Sendable {
    /// Bounds on the cluster's time at a moment of the monotonic clock, all in milliseconds.
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

    /// The assumed maximum difference between wall clocks before the first sample: 10 minutes.
    private static let uncertainty: Int64 = 600_000
    /// The milliseconds in which two monotonic clocks drift apart by at most one.
    private static let drift: Int64 = 2000

    private let time: TimeSource
    private let sample = Mutex<Sample?>(nil)

    package init(_ time: TimeSource) {
        self.time = time
    }

    /// The monotonic clock in milliseconds.
    package var monotonic: Int64 { Int64(clamping: time.monotonicNanoseconds() / 1_000_000) }

    /// The earliest and the latest possible current time, in milliseconds since 1970.
    package var bounds: (earliest: Int64, latest: Int64) {
        let now = monotonic
        guard let sample = sample.withLock({ $0 }) else {
            return (time.unixMilliseconds - Self.uncertainty, time.unixMilliseconds + Self.uncertainty)
        }
        return Self.carry(sample, to: now)
    }

    /// The earliest possible current time.
    package var earliest: Int64 { bounds.earliest }

    /// The latest possible current time.
    package var latest: Int64 { bounds.latest }

    /// The bounds from a sample; nil before the first sample. Only these bounds may move the cluster's clock.
    package var known: (earliest: Int64, latest: Int64)? {
        let now = monotonic
        return sample.withLock { $0 }.map { Self.carry($0, to: now) }
    }

    private static func carry(_ sample: Sample, to now: Int64) -> (earliest: Int64, latest: Int64) {
        let elapsed = max(0, now - sample.monotonic)
        let error = elapsed / drift + (elapsed > 0 ? 1 : 0)
        return (sample.earliest + elapsed - error, sample.latest + elapsed + error)
    }

    /// Updates the bounds with a time reported by the server.
    ///
    /// - Parameters:
    ///   - milliseconds: The cluster's time at some moment between `start` and now.
    ///   - start: ``monotonic`` before the request.
    package func set(_ milliseconds: Int64, askedAt start: Int64) {
        let end = monotonic
        sample.withLock { sample in
            // Another thread may have stored a later sample since. Carried back, it would count the time between twice.
            let now = max(end, sample?.monotonic ?? end)
            // The server's time is truncated, so it may be up to one millisecond later.
            let new = Sample(earliest: milliseconds, latest: milliseconds + 1 + max(0, now - start), monotonic: now)
            guard let old = sample.map({ Self.carry($0, to: now) }) else { return sample = new }
            let (earliest, latest) = (max(old.earliest, new.earliest), min(old.latest, new.latest))
            // Disjoint bounds mean that the cluster's clock was set. The server's time wins, because the other nodes use it.
            sample = earliest <= latest ? Sample(earliest: earliest, latest: latest, monotonic: now) : new
        }
    }

    /// Restores the sample of an earlier process on this machine, unless the server has been asked since.
    package func restore(_ former: Sample) {
        sample.withLock { sample in
            if sample == nil, former.earliest <= former.latest, former.monotonic <= monotonic { sample = former }
        }
    }

    /// The sample to save for ``restore(_:)``; nil before the first sample.
    package var saved: Sample? { sample.withLock { $0 } }
}

import Store
import Synchronization

@testable import Fetch

/// What is true in the simulated world, and what a response must therefore not contain.
///
/// The rules: bytes are those of a rendition of the requested source; nothing from before a purge is given out after the purge has
/// returned; nothing is given out longer than its lifetimes after its source has changed.
final class Ledger: Sendable {
    /// The sources: pairs of URLs have the same contents.
    static let urls = (0..<8).map { "https://\($0 < 4 ? "a" : "b").test/\($0).gif" }

    static func group(_ url: Int) -> UInt8 { UInt8(url / 2) }

    /// The least that a request may be answered with that starts now.
    struct Floor: Sendable {
        /// By URL: the version that the source had when the last purge began.
        var versions = [UInt32](repeating: 0, count: Ledger.urls.count)
        /// The last conversion that had begun when the last purge of everything began.
        var conversion: UInt32 = 0
        /// The same by purged object.
        var objects: [ObjectID: UInt32] = [:]

        mutating func raise(to other: Floor) {
            for url in versions.indices { versions[url] = max(versions[url], other.versions[url]) }
            conversion = max(conversion, other.conversion)
            objects.merge(other.objects) { max($0, $1) }
        }
    }

    private struct State {
        /// The current version of each group.
        var versions = [UInt32](repeating: 1, count: Ledger.urls.count / 2)
        /// When versions were replaced, in nanoseconds, by group and version.
        var replaced: [[UInt32: UInt64]] = Array(repeating: [:], count: Ledger.urls.count / 2)
        var conversions: UInt32 = 0
        var floor = Floor()
        /// What is left of it after a restart: purges that were reported as durable.
        var durableFloor = Floor()
        var violations: [String] = []
        var events: [String] = []
        var pending = 0
        var counts = Counts()
    }

    /// What happened.
    struct Counts: Sendable {
        var requests = 0
        var answers = 0
        var errors = 0
        var purges = 0
        var lost = 0

        mutating func add(_ other: Counts) {
            requests += other.requests
            answers += other.answers
            errors += other.errors
            purges += other.purges
            lost += other.lost
        }
    }

    private let state = Mutex(State())

    var counts: Counts { state.withLock(\.counts) }
    var violations: [String] { state.withLock(\.violations) }
    /// Requests without a response.
    var pending: Int { state.withLock(\.pending) }

    /// The latest events, to find the cause of a violation.
    var events: [String] { state.withLock(\.events) }

    func violation(_ text: String) {
        state.withLock { $0.violations.append(text) }
    }

    func note(_ event: String) {
        state.withLock { state in
            if state.events.count >= 400 { state.events.removeFirst(200) }
            state.events.append(event)
        }
    }

    // MARK: Sources

    func contents(_ group: UInt8) -> SourceContents {
        SourceContents(group: group, version: state.withLock { $0.versions[Int(group)] })
    }

    func replace(_ group: UInt8, at time: UInt64) {
        state.withLock { state in
            state.replaced[Int(group)][state.versions[Int(group)]] = time
            state.versions[Int(group)] += 1
        }
    }

    /// Nanoseconds since a version was replaced by the next; 0 for the current one.
    func age(_ contents: SourceContents, at time: UInt64) -> UInt64 {
        state.withLock { time - min(time, $0.replaced[Int(contents.group)][contents.version] ?? time) }
    }

    func nextConversion() -> UInt32 {
        state.withLock { state in
            state.conversions += 1
            return state.conversions
        }
    }

    // MARK: Requests

    func requestBegan() -> Floor {
        state.withLock { state in
            state.pending += 1
            state.counts.requests += 1
            return state.floor
        }
    }

    /// - Parameter isLost: Whether the process has crashed, so that no client gets the response.
    func requestEnded(isError: Bool, isLost: Bool) {
        state.withLock { state in
            state.pending -= 1
            if isLost {
                state.counts.lost += 1
            } else if isError {
                state.counts.errors += 1
            } else {
                state.counts.answers += 1
            }
        }
    }

    // MARK: Purges

    /// The floor after a purge that begins now.
    func floor(after scope: PurgeScope) -> Floor {
        state.withLock { state in
            var floor = Floor()
            for url in Self.urls.indices where scope.covers(Self.urls[url]) {
                floor.versions[url] = state.versions[Int(Self.group(url))]
            }
            switch scope {
            case .all: floor.conversion = state.conversions
            case .object(let id): floor.objects[id] = state.conversions
            case .url, .prefix, .host: break
            }
            return floor
        }
    }

    func purged(_ floor: Floor, isDurable: Bool) {
        state.withLock { state in
            state.counts.purges += 1
            state.floor.raise(to: floor)
            if isDurable { state.durableFloor.raise(to: floor) }
        }
    }

    /// - Parameter keepsPurges: False after a power loss of a disk that has reported syncs which it did not do.
    func restarted(keepsPurges: Bool) {
        state.withLock { state in
            if !keepsPurges { state.durableFloor = Floor() }
            state.floor = state.durableFloor
        }
    }
}

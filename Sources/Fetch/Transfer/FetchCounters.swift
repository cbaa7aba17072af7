internal import Synchronization

/// The counters of a fetcher since its start, and its present load.
package struct FetchCounters: Sendable {
    /// Fetches started.
    package fileprivate(set) var started = 0
    /// Fetches that returned a source.
    package fileprivate(set) var fetched = 0
    /// Fetches that were answered with 304.
    package fileprivate(set) var notModified = 0
    /// Fetches that failed, except cancelled ones.
    package fileprivate(set) var failed = 0
    /// Fetches whose task was cancelled.
    package fileprivate(set) var cancelled = 0
    /// Fetches refused because the queue was full.
    package fileprivate(set) var refusedBusy = 0
    /// Redirects followed.
    package fileprivate(set) var redirects = 0
    /// Bytes of bodies received, also by fetches that failed.
    package fileprivate(set) var bytes = 0
    /// Connections opened.
    package fileprivate(set) var connections = 0
    /// Connections refused because of their address or port.
    package fileprivate(set) var refusedAddresses = 0
    /// Fetches with a request under way now.
    package fileprivate(set) var active = 0
    /// Fetches that wait in the queue now.
    package fileprivate(set) var waiting = 0
}

/// The shared storage of ``FetchCounters``. Any thread.
final class FetchMetrics: Sendable {
    private let counters = Mutex(FetchCounters())

    func snapshot() -> FetchCounters {
        counters.withLock { $0 }
    }

    func countStart() {
        counters.withLock { $0.started += 1 }
    }

    func countRedirect() {
        counters.withLock { $0.redirects += 1 }
    }

    func count(_ transfer: Transfer) {
        let (bytes, opened, refused) = (transfer.bodyBytes, transfer.openedSockets, transfer.refusedSockets)
        counters.withLock { counters in
            counters.bytes += bytes
            counters.connections += opened
            counters.refusedAddresses += refused
        }
    }

    func countFinish(_ result: Result<FetchOutcome, FetchError>) {
        counters.withLock { counters in
            switch result {
            case .success(.fetched): counters.fetched += 1
            case .success(.notModified): counters.notModified += 1
            case .failure(.cancelled): counters.cancelled += 1
            case .failure(let error):
                counters.failed += 1
                if error == .busy { counters.refusedBusy += 1 }
            }
        }
    }

    func setLoad(active: Int, waiting: Int) {
        counters.withLock { counters in
            counters.active = active
            counters.waiting = waiting
        }
    }
}

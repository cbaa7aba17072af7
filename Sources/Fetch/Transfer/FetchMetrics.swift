internal import Synchronization

/// The counters behind ``FetchCounters``, written by the loop and read by anyone.
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

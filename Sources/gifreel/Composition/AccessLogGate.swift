internal import HTTP
internal import Synchronization

/// Lets finished requests through to the access log while the log's level permits them.
final class AccessLogGate: HTTPObserver {
    private let log: any HTTPObserver
    private let isOpen: Atomic<Bool>

    init(_ log: any HTTPObserver, isOpen: Bool) {
        self.log = log
        self.isOpen = Atomic(isOpen)
    }

    func set(isOpen: Bool) {
        self.isOpen.store(isOpen, ordering: .relaxed)
    }

    func requestsFinished(_ batch: HTTPAccessBatch) {
        if isOpen.load(ordering: .relaxed) { log.requestsFinished(batch) }
    }
}

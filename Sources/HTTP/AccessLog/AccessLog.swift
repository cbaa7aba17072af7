internal import CLinux
internal import Synchronization
internal import SystemIO

/// Carries batches from the loops to the observer's thread. Its queue is bounded: where it is full, a batch is dropped
/// and counted, since a log must not slow the answers down.
final class AccessLog: Sendable {
    private struct State {
        var batches: [HTTPAccessBatch] = []
        var lost = 0
        var isClosed = false
    }

    /// Batches that may wait: some 32,000 requests.
    private static let capacity = 64

    private let observer: any HTTPObserver
    private let wakeup: Wakeup
    private let state = Mutex(State())

    init(observer: any HTTPObserver) throws(SystemError) {
        self.observer = observer
        wakeup = try Wakeup()
    }

    func post(_ batch: HTTPAccessBatch) {
        let wasEmpty = state.withLock { state in
            guard state.batches.count < Self.capacity else {
                state.lost += batch.count
                return false
            }
            state.batches.append(batch)
            return state.batches.count == 1
        }
        if wasEmpty { wakeup.signal() }
    }

    /// Lets ``run()`` return once it has handed over what is there.
    func close() {
        state.withLock { $0.isClosed = true }
        wakeup.signal()
    }

    /// What is waiting; the last batch tells how many requests were dropped.
    private func take() -> (batches: [HTTPAccessBatch], isClosed: Bool) {
        state.withLock { state in
            var batches = state.batches
            if state.lost > 0 { batches.append(HTTPAccessBatch(lost: state.lost)) }
            state.batches = []
            state.lost = 0
            return (batches, state.isClosed)
        }
    }

    /// Hands batches over until closed. It blocks, on a thread of its own, which takes the processor from nobody (SCHED_BATCH of
    /// sched(7)) but where somebody else has chosen how it is scheduled: a loop in the middle of a turn is more urgent.
    func run() {
        if clinux_has_default_scheduling() != 0 { _ = clinux_use_batch_scheduling(1) }
        do {
            let poller = try Poller()
            try poller.addReadable(wakeup.number, token: 0)
            var reports = Poller.Reports()
            while true {
                poller.wait(&reports, timeout: -1)
                wakeup.clear()
                let (batches, isClosed) = take()
                for batch in batches { observer.requestsFinished(batch) }
                if isClosed, batches.isEmpty { return }
                if isClosed { wakeup.signal() }
            }
        } catch {
            // Without a poller there is no log; the loops go on, and drop what they cannot hand over.
            return
        }
    }
}

internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// A bounded queue of batches from the loops to the observers' thread. If it is full, a batch is dropped and its requests are
/// counted, because logging must not delay responses. Any thread.
final class AccessLog: Sendable {
    private struct State {
        var batches: [HTTPAccessBatch] = []
        /// Bytes of memory held by the batches.
        var bytes = 0
        var lost = 0
        var isClosed = false
    }

    /// The maximum memory of queued batches, in bytes: about 40,000 requests with short targets.
    static let capacity = 8 << 20

    private let observers: [any HTTPObserver]
    private let wakeup = Semaphore()
    private let state = Mutex(State())

    init(observers: [any HTTPObserver]) {
        self.observers = observers
    }

    func post(_ batch: HTTPAccessBatch) {
        let (wasEmpty, isDropped) = state.withLock { state in
            guard state.bytes + batch.memory <= Self.capacity else {
                state.lost += batch.count
                return (false, true)
            }
            state.batches.append(batch)
            state.bytes += batch.memory
            return (state.batches.count == 1, false)
        }
        if isDropped {
            for observer in observers { observer.requestsDropped(batch) }
        }
        if wasEmpty { wakeup.signal() }
    }

    /// Lets ``run()`` return once the queued batches are processed.
    func close() {
        state.withLock { $0.isClosed = true }
        wakeup.signal()
    }

    /// Removes and returns the queued batches. The last batch carries the number of dropped requests.
    func take() -> (batches: [HTTPAccessBatch], isClosed: Bool) {
        state.withLock { state in
            var batches = state.batches
            if state.lost > 0 { batches.append(HTTPAccessBatch(lost: state.lost)) }
            state.batches = []
            state.bytes = 0
            state.lost = 0
            return (batches, state.isClosed)
        }
    }

    /// Passes batches to the observers until the log is closed. Blocks, on its own thread. The thread runs as SCHED_BATCH
    /// (sched(7)), because a loop in the middle of a turn is more urgent, unless another policy was set for the process.
    func run() {
        if sched_getscheduler(0) == SCHED_OTHER { _ = clinux_use_batch_scheduling(1) }
        while true {
            wakeup.wait()
            let (batches, isClosed) = take()
            for batch in batches {
                for observer in observers { observer.requestsFinished(batch) }
            }
            if isClosed, batches.isEmpty { return }
            if isClosed { wakeup.signal() }
        }
    }
}

/// Collects a loop's finished requests in batches. Used by one loop thread.
final class AccessRecorder {
    static let batchSize = 512
    /// The number of text bytes at which a batch counts as full.
    static let batchText = 64 * 1024
    /// The number of response bytes at which a batch counts as full, because limits of bytes count batches.
    static let batchResponses = 4 << 20

    private let log: AccessLog
    /// The batch's methods never re-enter this object, so the runtime exclusivity check, a cost per request, is disabled.
    @exclusivity(unchecked) private var batch = HTTPAccessBatch()

    init(_ log: AccessLog) {
        self.log = log
    }

    var isEmpty: Bool { batch.count == 0 }

    func record(_ entry: AccessEntry, _ texts: AccessTexts) {
        batch.append(entry, texts)
        if batch.isFull { flush() }
    }

    /// Records a request whose texts are stored contiguously.
    func record(_ entry: AccessEntry, texts: UnsafeRawBufferPointer) {
        batch.append(entry, texts: texts)
        if batch.isFull { flush() }
    }

    /// Posts the recorded requests to the log.
    func flush() {
        guard !isEmpty else { return }
        let full = batch
        batch = HTTPAccessBatch()
        log.post(full)
    }
}

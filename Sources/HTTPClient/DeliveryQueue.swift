internal import DequeModule
internal import Synchronization
package import SystemIO

package struct DeliveryLimits: Sendable {
    /// The maximum number of items that wait or are being sent, for all receivers together.
    package var items: Int
    /// Whether each receiver may hold at most three times the remaining capacity, leaving room for others if it hangs.
    package var leavesRoom = false
    /// The maximum number of items sent together.
    package var batch = 1
    /// How long a sender collects items before its first batch.
    package var interval = Duration.zero
    /// The maximum number of concurrent batches per receiver.
    package var perReceiver = 1
    /// The maximum number of attempts per batch.
    package var attempts: Int
    package var backoff: Backoff

    package init(items: Int, attempts: Int, backoff: Backoff) {
        self.items = items
        self.attempts = attempts
        self.backoff = backoff
    }
}

/// The result of a delivery attempt.
package enum DeliveryResult: Sendable {
    case delivered
    /// Another attempt will not succeed.
    case refused(cause: String)
    /// Another attempt may succeed.
    case unavailable(cause: String)

    /// The statuses after which another attempt may succeed.
    package static let temporary = Set(500...999).union([408, 429])

    /// - Parameter status: The status of the receiver's response.
    package init(status: Int, temporary: Set<Int> = Self.temporary) {
        self =
            switch status {
            case 200...299: .delivered
            case _ where temporary.contains(status): .unavailable(cause: "status \(status)")
            default: .refused(cause: "status \(status)")
            }
    }
}

package enum DeliveryEvent: Sendable {
    case delivered
    /// An attempt failed, and another follows.
    case repeated(cause: String)
    case failed(cause: String)
    /// Stopping the queue ended the delivery.
    case stopped
}

/// Delivers items to receivers, and retries temporary failures with exponential backoff.
///
/// Each receiver has its own queue and senders, so that a failing or hanging receiver delays no other. The queues are bounded
/// and in memory: items that do not fit are refused, and stopping abandons the rest. Any thread; lives as long as the process.
package final class DeliveryQueue<Item: Sendable>: Sendable {
    private struct Receiver {
        var items: Deque<Item> = []
        /// The number of items that wait or are being sent.
        var count = 0
        var senders = 0
    }

    private struct State {
        var receivers: [String: Receiver] = [:]
        var count = 0
        var isStopped = false
        var lastSender = 0
        var senders: [Int: Task<Void, Never>] = [:]
        /// The tasks that wait while items are collected, by sender.
        var pauses: [Int: Task<Void, Never>] = [:]
    }

    private let limits: DeliveryLimits
    private let state = Mutex(State())
    private let send: @Sendable ([Item]) async -> DeliveryResult
    private let report: @Sendable ([Item], DeliveryEvent) -> Void

    /// - Parameters:
    ///   - send: Makes one attempt.
    ///   - report: Called for each event of a batch.
    package init(
        _ limits: DeliveryLimits, send: @escaping @Sendable ([Item]) async -> DeliveryResult,
        report: @escaping @Sendable ([Item], DeliveryEvent) -> Void
    ) {
        self.limits = limits
        self.send = send
        self.report = report
    }

    /// The number of items that wait or are being sent.
    package var count: Int { state.withLock { $0.count } }

    /// Queues an item.
    ///
    /// - Returns: False if the queue is full or was stopped.
    package func add(_ item: Item, to receiver: String) -> Bool {
        state.withLock { state in
            guard !state.isStopped, state.count < limits.items else { return false }
            let taken = state.receivers[receiver]?.count ?? 0
            guard !limits.leavesRoom || taken < 3 * (limits.items - state.count) else { return false }
            state.count += 1
            state.receivers[receiver, default: Receiver()].count += 1
            state.receivers[receiver]?.items.append(item)
            if state.receivers[receiver, default: Receiver()].senders < limits.perReceiver {
                state.receivers[receiver]?.senders += 1
                state.lastSender += 1
                let number = state.lastSender
                // Detached, so that the task does not inherit the trace of a request.
                state.senders[number] = Task.detached { await self.run(receiver, number) }
            }
            return true
        }
    }

    private func run(_ receiver: String, _ number: Int) async {
        if limits.interval > .zero {
            let pause = Task { [interval = limits.interval] in _ = try? await Task.sleep(for: interval) }
            let isStopped = state.withLock { state in
                state.pauses[number] = pause
                return state.isStopped
            }
            if isStopped { pause.cancel() }
            await pause.value
        }
        while let batch = nextBatch(receiver, number) {
            await deliver(batch)
            state.withLock { state in
                state.count -= batch.count
                state.receivers[receiver]?.count -= batch.count
            }
        }
    }

    /// Takes the next batch. Returns nil if the queue is empty; the sender then ends.
    private func nextBatch(_ receiver: String, _ number: Int) -> [Item]? {
        state.withLock { state in
            var queue = state.receivers[receiver, default: Receiver()]
            let batch = Array(queue.items.prefix(limits.batch))
            queue.items.removeFirst(batch.count)
            if batch.isEmpty { queue.senders -= 1 }
            state.receivers[receiver] = queue.senders > 0 ? queue : nil
            if !batch.isEmpty { return batch }
            state.senders[number] = nil
            state.pauses[number] = nil
            return nil
        }
    }

    private func deliver(_ batch: [Item]) async {
        for attempt in 1...limits.attempts where !Task.isCancelled {
            switch await send(batch) {
            case .delivered: return report(batch, .delivered)
            case .refused(let cause): return report(batch, Task.isCancelled ? .stopped : .failed(cause: cause))
            case .unavailable(let cause):
                if Task.isCancelled { break }
                guard attempt < limits.attempts else { return report(batch, .failed(cause: cause)) }
                report(batch, .repeated(cause: cause))
                try? await Task.sleep(for: limits.backoff.pause(after: attempt))
            }
        }
        report(batch, .stopped)
    }

    /// Refuses further items, sends the queued items, and gives up those that remain after `limit`.
    package func stop(within limit: Duration) async {
        let senders = stopCollecting()
        let watch = Task {
            try? await Task.sleep(for: limit)
            for sender in senders { sender.cancel() }
        }
        for sender in senders { await sender.value }
        watch.cancel()
    }

    /// Refuses further items and gives up the remaining ones.
    package func cancel() {
        for sender in stopCollecting() { sender.cancel() }
    }

    private func stopCollecting() -> [Task<Void, Never>] {
        state.withLock { state in
            state.isStopped = true
            for pause in state.pauses.values { pause.cancel() }
            return Array(state.senders.values)
        }
    }
}

extension HTTPClient {
    /// Sends a request of whose response only the status matters.
    package func deliver(
        _ request: ClientRequest, temporary: Set<Int> = DeliveryResult.temporary
    ) async -> DeliveryResult {
        var request = request
        request.destination = .status
        do throws(HTTPError) {
            return DeliveryResult(status: try await send(request).status, temporary: temporary)
        } catch {
            return .unavailable(cause: "\(error)")
        }
    }
}

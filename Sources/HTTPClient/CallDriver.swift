internal import CSystem
internal import SystemIO

/// Drives the calls of an ``HTTPClient``: admits them, sends requests and enforces timeouts. Used only on the client's thread.
final class CallDriver {
    private final class ActiveCall {
        let id: Int
        let call: any HTTPCall
        let submitted = ContinuousClock.now
        /// When the first request was sent.
        var started: ContinuousClock.Instant?
        /// The key under which the call is admitted or waits.
        var key: String
        /// The request in progress; nil while the call waits.
        var transfer: HTTPTransfer?
        var needsFreshConnection = false
        /// Whether the call ends as soon as the lookup of its name has ended.
        var isCancelled = false

        init(_ id: Int, _ call: any HTTPCall) {
            self.id = id
            self.call = call
            key = call.key
        }

        /// The deadline of the wait in the queue; once the first request was sent, the deadline of the call.
        var deadline: ContinuousClock.Instant { (started ?? submitted) + call.timeout }
    }

    private let sockets = SocketTable()
    private var calls: [Int: ActiveCall] = [:]
    private var byHandle: [UnsafeMutableRawPointer: ActiveCall] = [:]
    private var queue: FairQueue<Int, String>
    private var counted = HTTPClient.Counters()
    private let publish: (HTTPClient.Counters) -> Void
    private var nextSweep = ContinuousClock.now

    /// The maximum interval between deadline checks.
    private static let sweepInterval = Duration.milliseconds(250)
    /// The polling interval for calls whose ``HTTPCall/mayBegin()`` returned false.
    private static let gateInterval = Duration.milliseconds(20)

    /// - Parameter publish: Called with the counters before a caller receives its result.
    init(_ limits: HTTPClient.Limits, publish: @escaping (HTTPClient.Counters) -> Void) {
        queue = FairQueue(limits)
        self.publish = publish
    }

    private func publishCounters() {
        counted.active = queue.runningCount
        counted.waiting = queue.waitingCount
        publish(counted)
    }

    func handle(_ message: HTTPClient.Message, on multi: borrowing MultiHandle) {
        switch message {
        case .submit(let id, let makeCall):
            let active = ActiveCall(id, makeCall())
            calls[id] = active
            enter(active, isContinuation: false, on: multi)
        case .cancel(let id):
            if let active = calls[id] { cancel(active, on: multi) }
        case .limit(let limits):
            queue.limits = limits
            multi.setIdleConnections(limits.running)
        }
    }

    func endAll(_ error: HTTPError, on multi: borrowing MultiHandle) {
        for active in Array(calls.values) { finish(active, error, on: multi) }
    }

    /// Handles finished transfers and expired deadlines, and starts waiting calls within the limits. Does not block.
    ///
    /// - Throws: A libcurl error that affects all transfers.
    func advance(on multi: borrowing MultiHandle) throws(HTTPError) {
        try multi.perform()
        for active in Array(byHandle.values) {
            if active.isCancelled {
                cancel(active, on: multi)
            } else if active.transfer?.passOn() == false {
                end(active, .failure(HTTPTransfer.refused), on: multi)
            }
        }
        while let (handle, code) = multi.nextFinished() {
            if let active = byHandle[handle], let transfer = active.transfer { end(active, transfer.result(code), on: multi) }
        }
        let now = ContinuousClock.now
        if now >= nextSweep { sweep(at: now, on: multi) }
        while let id = queue.next(mayBegin: { mayBegin($0, at: now) }) {
            if let active = calls[id] { start(active, on: multi) }
        }
        publishCounters()
    }

    /// Whether a call may begin once the limits allow it. If not, it is polled, because nothing wakes the thread for it.
    private func mayBegin(_ id: Int, at now: ContinuousClock.Instant) -> Bool {
        guard let call = calls[id]?.call, !call.mayBegin() else { return true }
        nextSweep = min(nextSweep, now + Self.gateInterval)
        return false
    }

    /// The maximum time until the next call of ``advance(on:)``, in milliseconds.
    var waitLimit: Int32 {
        if calls.isEmpty { return 60_000 }
        let left = (nextSweep - ContinuousClock.now) / .milliseconds(1)
        return Int32(max(0, min(left.rounded(.up), 1000)))
    }

    private func sweep(at now: ContinuousClock.Instant, on multi: borrowing MultiHandle) {
        nextSweep = now + Self.sweepInterval
        for active in Array(calls.values) {
            if let transfer = active.transfer {
                if transfer.isStalled(at: now) { end(active, .failure(.stalled), on: multi) }
                if let interval = active.transfer?.stallCheckInterval { nextSweep = min(nextSweep, now + interval) }
            } else if now >= active.deadline {
                finish(active, active.started == nil ? .busy : Self.late, on: multi)
            } else {
                nextSweep = min(nextSweep, active.deadline)
            }
        }
    }

    private static let late = HTTPError.timedOut(.head, cause: "no time is left")

    // MARK: One call

    /// Admits, queues or refuses a call.
    private func enter(_ active: ActiveCall, isContinuation: Bool, on multi: borrowing MultiHandle) {
        let now = ContinuousClock.now
        let decision = queue.enter(active.id, key: active.key, isContinuation: isContinuation) { mayBegin(active.id, at: now) }
        switch decision {
        case .admitted: start(active, on: multi)
        case .queued: nextSweep = min(nextSweep, active.deadline)
        case .refused: finish(active, .busy, on: multi)
        }
    }

    /// Sends the next request of an admitted call.
    private func start(_ active: ActiveCall, on multi: borrowing MultiHandle) {
        let now = ContinuousClock.now
        if active.started == nil { active.started = now }
        let timeLeft = active.deadline - now
        do throws(HTTPError) {
            guard timeLeft > .zero else { throw Self.late }
            guard let request = active.call.nextRequest() else {
                queue.leave(active.key)
                return finish(active, nil, on: multi)
            }
            let transfer = try HTTPTransfer(
                request, for: active.call, timeLeft: timeLeft, sockets: sockets,
                onFreshConnection: active.needsFreshConnection)
            active.transfer = transfer
            byHandle[transfer.easy.raw] = active
            try multi.add(transfer.easy.raw)
            if let interval = transfer.stallCheckInterval { nextSweep = min(nextSweep, now + interval) }
        } catch {
            if active.transfer == nil { queue.leave(active.key) }
            finish(active, error, on: multi)
        }
    }

    /// Ends a call, or marks it if it has to finish its lookup first.
    private func cancel(_ active: ActiveCall, on multi: borrowing MultiHandle) {
        active.isCancelled = true
        if active.call.finishesLookup, active.transfer?.isLookingUp == true { return }
        finish(active, .cancelled, on: multi)
    }

    /// Handles the end of a request.
    private func end(_ active: ActiveCall, _ result: Result<Void, HTTPError>, on multi: borrowing MultiHandle) {
        guard let transfer = active.transfer else { return }
        if active.isCancelled { return finish(active, .cancelled, on: multi) }
        active.needsFreshConnection = transfer.isStale(result)
        guard active.needsFreshConnection || active.call.continues(after: result) else { return finish(active, nil, on: multi) }
        release(active, on: multi)
        active.key = active.call.key
        enter(active, isContinuation: true, on: multi)
    }

    private func finish(_ active: ActiveCall, _ error: HTTPError?, on multi: borrowing MultiHandle) {
        guard calls.removeValue(forKey: active.id) != nil else { return }
        release(active, on: multi)
        queue.remove(active.id)
        publishCounters()
        active.call.end(error)
    }

    /// Ends the request in progress, if any, and releases its slot.
    private func release(_ active: ActiveCall, on multi: borrowing MultiHandle) {
        guard let transfer = active.transfer.take() else { return }
        multi.remove(transfer.easy.raw)
        byHandle[transfer.easy.raw] = nil
        queue.leave(active.key)
        counted.bytes += transfer.receivedBytes
        counted.connections += transfer.openedSockets
        counted.refusedAddresses += transfer.refusedSockets
    }
}

internal import CCurl
internal import Curl

/// The driver of all fetches: it admits them, sends their requests, follows redirects and enforces time limits. Used on the
/// loop's thread only.
final class TransferDriver: CurlLoopDriver {
    enum Message {
        case submit(FetchRequest)
        case cancel(FetchRequest.ID)
        /// The context has new settings, whose limits may admit queued fetches.
        case applySettings
    }

    private let context: FetchContext
    private let sockets = SocketTable()
    private var operations: [FetchRequest.ID: FetchOperation] = [:]
    private var byHandle: [UnsafeMutableRawPointer: FetchOperation] = [:]
    private var queue: FairQueue<FetchRequest.ID, FetchOperation.Endpoint>
    private var nextSweep = ContinuousClock.now

    init(_ context: FetchContext) {
        self.context = context
        queue = FairQueue(FairQueue.Limits(context.settings.configuration))
    }

    // MARK: Messages from other threads

    func handle(_ message: Message, on multi: borrowing MultiHandle<FetchError>) {
        switch message {
        case .submit(let request): submit(request, on: multi)
        case .cancel(let id): cancel(id, on: multi)
        case .applySettings: applySettings(on: multi)
        }
    }

    private func submit(_ request: FetchRequest, on multi: borrowing MultiHandle<FetchError>) {
        let operation = FetchOperation(request)
        operations[request.id] = operation
        enter(operation, isContinuation: false, on: multi)
    }

    private func cancel(_ id: FetchRequest.ID, on multi: borrowing MultiHandle<FetchError>) {
        guard let operation = operations[id] else { return }
        finish(operation, .failure(.cancelled), on: multi)
    }

    /// Applies the limits of new settings; ``advance(on:)`` then starts the operations that they admit.
    private func applySettings(on multi: borrowing MultiHandle<FetchError>) {
        let configuration = context.settings.configuration
        queue.limits = FairQueue.Limits(configuration)
        multi.setIdleConnections(configuration.concurrency)
    }

    func endAll(_ error: FetchError, on multi: borrowing MultiHandle<FetchError>) {
        for operation in Array(operations.values) {
            finish(operation, .failure(error), on: multi)
        }
    }

    // MARK: One iteration of the loop

    /// Handles finished transfers and expired deadlines, and starts queued operations as far as the limits allow.
    func advance(on multi: borrowing MultiHandle<FetchError>) throws(FetchError) {
        try multi.perform()
        while let (handle, code) = multi.nextFinished() {
            guard let operation = byHandle[handle], let transfer = operation.transfer else { continue }
            handleResult(transfer.result(code), of: operation, on: multi)
        }
        let now = ContinuousClock.now
        if now >= nextSweep { sweep(at: now, on: multi) }
        while let id = queue.next() {
            if let operation = operations[id] { sendRequest(of: operation, on: multi) }
        }
        publishLoad()
    }

    var waitLimit: Int32 {
        if operations.isEmpty { return 60_000 }
        let left = (nextSweep - ContinuousClock.now) / .milliseconds(1)
        return Int32(max(0, min(left.rounded(.up), 1000)))
    }

    private var sweepInterval: Duration { min(.milliseconds(250), context.settings.configuration.stallTimeout / 4) }

    private func sweep(at now: ContinuousClock.Instant, on multi: borrowing MultiHandle<FetchError>) {
        nextSweep = now + sweepInterval
        let timeout = context.settings.configuration.timeout
        for operation in Array(operations.values) {
            if let transfer = operation.transfer {
                if transfer.isStalled(at: now) { handleResult(transfer.stalledResult(), of: operation, on: multi) }
            } else if now >= operation.deadline(timeout) {
                finish(operation, .failure(operation.started == nil ? .busy : .timeout(.total, limit: timeout)), on: multi)
            }
        }
    }

    // MARK: One operation

    /// Admits, queues or refuses an operation.
    private func enter(_ operation: FetchOperation, isContinuation: Bool, on multi: borrowing MultiHandle<FetchError>) {
        switch queue.enter(operation.request.id, key: operation.endpoint, isContinuation: isContinuation) {
        case .admitted: sendRequest(of: operation, on: multi)
        case .queued: break
        case .refused: finish(operation, .failure(.busy), on: multi)
        }
    }

    /// Sends the next request of an admitted operation.
    private func sendRequest(of operation: FetchOperation, on multi: borrowing MultiHandle<FetchError>) {
        let now = ContinuousClock.now
        let settings = context.settings
        operation.begin(at: now)
        do throws(FetchError) {
            // The settings may have changed since the operation was queued.
            try settings.check(operation.url, redirectedFrom: operation.request.url)
            let timeout = settings.configuration.timeout
            let timeLeft = operation.deadline(timeout) - now
            guard timeLeft > .zero else { throw .timeout(.total, limit: timeout) }
            let transfer = try Transfer(
                operation.url, validators: operation.validators, document: operation.request.document,
                fields: operation.request.fields + settings.fields(of: operation.url, source: operation.request.url),
                arriving: operation.request.arriving, redirects: operation.redirectDirectives, settings: settings,
                ownEndpoints: context.ownEndpoints, sockets: sockets, timeLeft: timeLeft,
                onFreshConnection: operation.needsFreshConnection)
            operation.transfer = transfer
            byHandle[transfer.easy.raw] = operation
            try multi.add(transfer.easy.raw)
        } catch {
            if operation.transfer == nil { queue.leave(operation.endpoint) }
            finish(operation, .failure(error), on: multi)
        }
    }

    private func handleResult(
        _ result: Transfer.Result, of operation: FetchOperation, on multi: borrowing MultiHandle<FetchError>
    ) {
        guard let transfer = operation.transfer else { return }
        switch result {
        case .failure(let error):
            finish(operation, .failure(error), on: multi)
        case .delivered:
            finish(operation, .success(nil), on: multi)
        case .notModified where !transfer.head.validators.confirm(operation.validators):
            // It is about another representation (RFC 9111 section 4.3.4).
            release(operation, on: multi)
            operation.repeatWithoutConditions()
            enter(operation, isContinuation: true, on: multi)
        case .notModified:
            finish(operation, .success(operation.unmodified(transfer)), on: multi)
        case .content(let body):
            finish(operation, .success(operation.fetched(body, from: transfer)), on: multi)
        case .redirect(let location):
            follow(location, by: transfer.head, in: operation, on: multi)
        case .staleConnection:
            release(operation, on: multi)
            operation.retryOnFreshConnection()
            enter(operation, isContinuation: true, on: multi)
        }
    }

    private func follow(
        _ location: [UInt8], by head: ResponseHead, in operation: FetchOperation, on multi: borrowing MultiHandle<FetchError>
    ) {
        do throws(FetchError) {
            let settings = context.settings
            let limit = settings.configuration.maxRedirects
            guard operation.redirects < limit else { throw .tooManyRedirects(limit: limit) }
            let next: SourceURL
            do throws(SourceURLError) {
                next = try operation.url.following(location: location)
            } catch {
                throw .failed(.redirect(error))
            }
            try settings.check(next, redirectedFrom: operation.request.url)
            release(operation, on: multi)
            operation.redirect(to: next, by: head)
            context.metrics.countRedirect()
            enter(operation, isContinuation: true, on: multi)
        } catch {
            finish(operation, .failure(error), on: multi)
        }
    }

    private func finish(
        _ operation: FetchOperation, _ result: Result<FetchOutcome?, FetchError>, on multi: borrowing MultiHandle<FetchError>
    ) {
        guard operations.removeValue(forKey: operation.request.id) != nil else { return }
        release(operation, on: multi)
        queue.remove(operation.request.id)
        publishLoad()
        operation.request.continuation.resume(returning: result)
    }

    private func publishLoad() {
        context.metrics.setLoad(active: queue.runningCount, waiting: queue.waitingCount)
    }

    /// Ends the request in progress, if any, and its share of the limits.
    private func release(_ operation: FetchOperation, on multi: borrowing MultiHandle<FetchError>) {
        guard let transfer = operation.transfer.take() else { return }
        multi.remove(transfer.easy.raw)
        byHandle[transfer.easy.raw] = nil
        queue.leave(operation.endpoint)
        context.metrics.count(transfer)
    }
}

extension FairQueue.Limits {
    init(_ configuration: FetchConfiguration) {
        self.init(
            running: configuration.concurrency, runningPerKey: configuration.perHost, waiting: configuration.queue,
            waitingPerKey: configuration.queuePerHost)
    }
}

internal import CCurl

/// Drives all fetches: admits, performs, follows redirects, gives up. Lives on the transfer loop's thread alone.
final class TransferDriver {
    private let settings: FetchSettings
    private let metrics: FetchMetrics
    private let sockets = SocketTable()
    private var operations: [FetchRequest.ID: FetchOperation] = [:]
    private var byHandle: [UnsafeMutableRawPointer: FetchOperation] = [:]
    private var admission: Admission<FetchRequest.ID, FetchOperation.Place>
    private var nextSweep = ContinuousClock.now

    init(settings: FetchSettings, metrics: FetchMetrics) {
        self.settings = settings
        self.metrics = metrics
        let configuration = settings.configuration
        admission = Admission(
            limit: configuration.concurrency, perKey: configuration.perHost, queue: configuration.queue,
            queuePerKey: configuration.queuePerHost)
    }

    // MARK: What the mailbox brings

    func submit(_ request: FetchRequest, on multi: borrowing MultiHandle) {
        let operation = FetchOperation(request)
        operations[request.id] = operation
        enter(operation, isContinuation: false, on: multi)
    }

    func cancel(_ id: FetchRequest.ID, on multi: borrowing MultiHandle) {
        guard let operation = operations[id] else { return }
        finish(operation, .failure(.cancelled), on: multi)
    }

    /// Ends all fetches with `error`.
    func finishAll(_ error: FetchError, on multi: borrowing MultiHandle) {
        for operation in Array(operations.values) {
            finish(operation, .failure(error), on: multi)
        }
    }

    // MARK: The loop's turn

    /// Takes in what libcurl has finished and what has taken too long, and starts what now has a place.
    func advance(on multi: borrowing MultiHandle) throws(FetchError) {
        try multi.perform()
        while let (handle, code) = multi.nextFinished() {
            guard let operation = byHandle[handle], let transfer = operation.transfer else { continue }
            handleResult(transfer.result(code), of: operation, on: multi)
        }
        let now = ContinuousClock.now
        if now >= nextSweep { sweep(at: now, on: multi) }
        while let id = admission.next() {
            if let operation = operations[id] { begin(operation, on: multi) }
        }
        noteLoad()
    }

    /// How long the loop may wait for libcurl, in milliseconds.
    var patience: Int32 {
        if operations.isEmpty { return 60_000 }
        let left = (nextSweep - ContinuousClock.now) / .milliseconds(1)
        return Int32(max(0, min(left.rounded(.up), 1000)))
    }

    private var sweepInterval: Duration { min(.milliseconds(250), settings.configuration.stallTime / 4) }

    private func sweep(at now: ContinuousClock.Instant, on multi: borrowing MultiHandle) {
        nextSweep = now + sweepInterval
        for operation in Array(operations.values) {
            if let transfer = operation.transfer {
                if transfer.isStalled(at: now) { handleResult(transfer.stalledResult(), of: operation, on: multi) }
            } else if now >= operation.deadline(settings.configuration.timeout) {
                finish(operation, .failure(operation.started == nil ? .busy : .timeout(.total)), on: multi)
            }
        }
    }

    // MARK: One operation's way

    private func enter(_ operation: FetchOperation, isContinuation: Bool, on multi: borrowing MultiHandle) {
        switch admission.request(operation.request.id, key: operation.place, isContinuation: isContinuation) {
        case .run: begin(operation, on: multi)
        case .wait: break
        case .full: finish(operation, .failure(.busy), on: multi)
        }
    }

    /// Sends a request; the operation has its place already.
    private func begin(_ operation: FetchOperation, on multi: borrowing MultiHandle) {
        let now = ContinuousClock.now
        operation.begin(at: now)
        do throws(FetchError) {
            let timeLeft = operation.deadline(settings.configuration.timeout) - now
            guard timeLeft > .zero else { throw .timeout(.total) }
            let transfer = try Transfer(
                operation.url, validators: operation.request.validators, fields: operation.request.fields,
                settings: settings, sockets: sockets, timeLeft: timeLeft,
                onFreshConnection: operation.needsFreshConnection)
            operation.transfer = transfer
            byHandle[transfer.easy.raw] = operation
            try multi.add(transfer.easy.raw)
        } catch {
            if operation.transfer == nil { admission.release(operation.place) }
            finish(operation, .failure(error), on: multi)
        }
    }

    private func handleResult(_ result: Transfer.Result, of operation: FetchOperation, on multi: borrowing MultiHandle) {
        guard let transfer = operation.transfer else { return }
        operation.note(transfer)
        switch result {
        case .failure(let error):
            finish(operation, .failure(error), on: multi)
        case .notModified:
            finish(operation, .success(operation.unmodified(transfer)), on: multi)
        case .content(let body):
            finish(operation, .success(operation.fetched(body, from: transfer)), on: multi)
        case .redirect(let location):
            follow(location, in: operation, on: multi)
        case .staleConnection:
            leavePlace(operation, on: multi)
            operation.needsFreshConnection = true
            continueLater(operation, on: multi)
        }
    }

    private func follow(_ location: [UInt8], in operation: FetchOperation, on multi: borrowing MultiHandle) {
        do throws(FetchError) {
            let limit = settings.configuration.maxRedirects
            guard operation.timings.redirects < limit else { throw .tooManyRedirects(limit: limit) }
            let next: SourceURL
            do throws(SourceURLError) {
                next = try operation.url.following(location: location)
            } catch {
                throw .failed(.redirect(error))
            }
            try settings.check(next)
            leavePlace(operation, on: multi)
            operation.url = next
            operation.needsFreshConnection = false
            operation.timings.redirects += 1
            metrics.countRedirect()
            continueLater(operation, on: multi)
        } catch {
            finish(operation, .failure(error), on: multi)
        }
    }

    /// Sends the next request as soon as there is a place for it.
    private func continueLater(_ operation: FetchOperation, on multi: borrowing MultiHandle) {
        operation.waitAgain(at: .now)
        enter(operation, isContinuation: true, on: multi)
    }

    private func finish(
        _ operation: FetchOperation, _ result: Result<FetchOutcome, FetchError>, on multi: borrowing MultiHandle
    ) {
        guard operations.removeValue(forKey: operation.request.id) != nil else { return }
        leavePlace(operation, on: multi)
        admission.leave(operation.request.id)
        metrics.countFinish(result)
        noteLoad()
        operation.request.continuation.resume(returning: result)
    }

    private func noteLoad() {
        metrics.setLoad(active: admission.runningCount, waiting: admission.waitingCount)
    }

    /// Ends the request under way, if one is, and gives its place back.
    private func leavePlace(_ operation: FetchOperation, on multi: borrowing MultiHandle) {
        guard let transfer = operation.transfer.take() else { return }
        multi.remove(transfer.easy.raw)
        byHandle[transfer.easy.raw] = nil
        admission.release(operation.place)
        metrics.count(transfer)
    }
}

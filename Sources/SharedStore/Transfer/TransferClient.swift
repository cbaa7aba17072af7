internal import Curl
internal import Glibc
internal import Synchronization
internal import SystemIO

/// Sends the requests of the store, on a thread of its own. Any thread.
final class TransferClient: Sendable {
    private let loop: CurlLoop<TransferDriver>
    private let lastID = Atomic(0)

    /// Starts the thread. The owner has to call ``stop()``.
    ///
    /// - Parameter connections: The largest number of requests that run at once, each on a connection.
    init(connections: Int) throws(StoreError) {
        loop = try CurlLoop(name: "store", idleConnections: connections) { TransferDriver(limit: connections) }
    }

    /// Sends a request and returns its response. Suspends; a cancelled task gets ``StoreError/cancelled``.
    ///
    /// While all connections are in use, a request waits for as long as it may take itself. Then it ends with
    /// ``StoreError/exhausted(cause:)``: that says nothing about the server.
    func perform(_ request: TransferRequest) async throws(StoreError) -> TransferResponse {
        let id = lastID.add(1, ordering: .relaxed).newValue
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: TransferDriver.Continuation) in
                let isOpen = loop.post(.submit(id, request, continuation))
                if !isOpen { continuation.resume(returning: .failure(.closed)) }
                // The cancellation handler may have run before the request was submitted.
                if isOpen, Task.isCancelled { loop.post(.cancel(id)) }
            }
        } onCancel: {
            loop.post(.cancel(id))
        }
        return try result.get()
    }

    /// Ends all requests with ``StoreError/closed`` and waits for the thread to end. A second call does nothing.
    func stop() {
        loop.stop()
    }
}

/// Starts and ends the requests of a ``TransferClient``. Used on the loop's thread only.
private final class TransferDriver: CurlLoopDriver {
    typealias Continuation = CheckedContinuation<Result<TransferResponse, StoreError>, Never>

    enum Message {
        case submit(Int, TransferRequest, Continuation)
        case cancel(Int)
    }

    private struct Waiting {
        let id: Int
        let request: TransferRequest
        let continuation: Continuation
        let deadline: ContinuousClock.Instant
    }

    private let limit: Int
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    /// The requests that wait for a connection, in the order of their arrival.
    private var waiting: [Waiting] = []

    init(limit: Int) {
        self.limit = limit
    }

    func handle(_ message: Message, on multi: borrowing MultiHandle<StoreError>) {
        switch message {
        case .submit(let id, let request, let continuation):
            if waiting.isEmpty, transfers.count < limit {
                start(id, request, continuation, on: multi)
            } else {
                waiting.append(Waiting(id: id, request: request, continuation: continuation, deadline: .now + request.timeout))
            }
        case .cancel(let id):
            if let index = waiting.firstIndex(where: { $0.id == id }) {
                waiting.remove(at: index).continuation.resume(returning: .failure(.cancelled))
                return
            }
            guard let (easy, transfer) = transfers.first(where: { $0.value.id == id }) else { return }
            transfers[easy] = nil
            multi.remove(transfer.easy.raw)
            transfer.finish(.cancelled)
        }
    }

    private func start(
        _ id: Int, _ request: TransferRequest, _ continuation: Continuation, on multi: borrowing MultiHandle<StoreError>
    ) {
        do throws(StoreError) {
            if case .file(let file) = request.destination {
                guard ftruncate(file.number, 0) == 0 else { throw .file(.last("ftruncate")) }
            }
            let transfer = try Transfer(id, request, continuation)
            try multi.add(transfer.easy.raw)
            transfers[transfer.easy.raw] = transfer
        } catch {
            continuation.resume(returning: .failure(error))
        }
    }

    /// Starts the first requests that wait, as many as there are free connections, and ends those that have waited for too long.
    private func startWaiting(on multi: borrowing MultiHandle<StoreError>) {
        guard !waiting.isEmpty else { return }
        let now = ContinuousClock.now
        for request in waiting where request.deadline <= now {
            let cause = "all \(limit) connections to the store are in use"
            request.continuation.resume(returning: .failure(.exhausted(cause: cause)))
        }
        waiting.removeAll { $0.deadline <= now }
        let free = max(0, limit - transfers.count)
        for request in waiting.prefix(free) { start(request.id, request.request, request.continuation, on: multi) }
        waiting.removeFirst(min(free, waiting.count))
    }

    func advance(on multi: borrowing MultiHandle<StoreError>) throws(StoreError) {
        try multi.perform()
        while let (easy, code) = multi.nextFinished() {
            guard let transfer = transfers.removeValue(forKey: easy) else { continue }
            multi.remove(transfer.easy.raw)
            transfer.finish(code)
        }
        startWaiting(on: multi)
    }

    /// Messages, libcurl's own timers and the end of a request's patience end a wait early.
    var waitLimit: Int32 {
        let longest = Duration.seconds(60)
        let wait = waiting.map { $0.deadline - .now }.min().map { min(max($0, .milliseconds(1)), longest) } ?? longest
        return Int32(wait / .milliseconds(1)) + 1
    }

    func endAll(_ error: StoreError, on multi: borrowing MultiHandle<StoreError>) {
        for transfer in transfers.values {
            multi.remove(transfer.easy.raw)
            transfer.finish(error)
        }
        transfers.removeAll()
        for request in waiting { request.continuation.resume(returning: .failure(error)) }
        waiting.removeAll()
    }
}

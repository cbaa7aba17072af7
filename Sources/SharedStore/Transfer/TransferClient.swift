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
    /// - Parameter connections: The largest number of open connections, and with that of requests that run at once.
    init(connections: Int) throws(StoreError) {
        loop = try CurlLoop(name: "store", idleConnections: connections, openConnections: connections) { TransferDriver() }
    }

    /// Sends a request and returns its response. Suspends; a cancelled task gets ``StoreError/cancelled``.
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

    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]

    func handle(_ message: Message, on multi: borrowing MultiHandle<StoreError>) {
        switch message {
        case .submit(let id, let request, let continuation):
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
        case .cancel(let id):
            guard let (easy, transfer) = transfers.first(where: { $0.value.id == id }) else { return }
            transfers[easy] = nil
            multi.remove(transfer.easy.raw)
            transfer.finish(.cancelled)
        }
    }

    func advance(on multi: borrowing MultiHandle<StoreError>) throws(StoreError) {
        try multi.perform()
        while let (easy, code) = multi.nextFinished() {
            guard let transfer = transfers.removeValue(forKey: easy) else { continue }
            multi.remove(transfer.easy.raw)
            transfer.finish(code)
        }
    }

    /// Only messages and libcurl's own timers end a wait early.
    var waitLimit: Int32 { 60_000 }

    func endAll(_ error: StoreError, on multi: borrowing MultiHandle<StoreError>) {
        for transfer in transfers.values {
            multi.remove(transfer.easy.raw)
            transfer.finish(error)
        }
        transfers.removeAll()
    }
}

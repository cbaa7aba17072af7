internal import Curl
internal import Synchronization

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

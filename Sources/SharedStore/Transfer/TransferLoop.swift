internal import Curl
internal import Glibc
internal import Synchronization
internal import SystemIO

/// The thread that owns all requests and connections, and the mailbox through which tasks reach it.
///
/// `@unchecked` because of `multi`: other threads only call its `wake()`, which libcurl documents as safe from any thread. The
/// loop's own thread makes all other calls. The handle is freed with the last reference, after the thread has ended.
final class TransferLoop: @unchecked Sendable {
    private typealias Continuation = CheckedContinuation<Result<TransferResponse, StoreError>, Never>

    private enum Message {
        case submit(Int, TransferRequest, Continuation)
        case cancel(Int)
    }

    private struct Mailbox {
        var messages: [Message] = []
        var nextID = 0
        var isClosed = false
    }

    private let multi: MultiHandle<StoreError>
    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<SystemThread?>(nil)

    /// Starts the thread. The owner has to call ``stop()``.
    ///
    /// - Parameter connections: The largest number of open connections, and with that of requests that run at once.
    init(connections: Int) throws(StoreError) {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        multi = try MultiHandle(idleConnections: connections, openConnections: connections)
        // The thread blocks all signals, among them SIGPIPE from writes to a closed TLS connection.
        guard let started = SystemThread.start(name: "store", { self.run() }) else {
            throw .exhausted(cause: "no more threads")
        }
        thread.withLock { $0 = started }
    }

    /// Sends a request and returns its response. Suspends; a cancelled task gets ``StoreError/cancelled``.
    func perform(_ request: TransferRequest) async throws(StoreError) -> TransferResponse {
        let id = mailbox.withLock { mailbox in
            mailbox.nextID += 1
            return mailbox.nextID
        }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { (continuation: Continuation) in
                let isOpen = post(.submit(id, request, continuation))
                if !isOpen { continuation.resume(returning: .failure(.closed)) }
                // The cancellation handler may have run before the request was submitted.
                if isOpen, Task.isCancelled { _ = post(.cancel(id)) }
            }
        } onCancel: {
            _ = post(.cancel(id))
        }
        return try result.get()
    }

    /// Ends all requests with ``StoreError/closed`` and waits for the thread to end. A second call does nothing.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        mailbox.withLock { $0.isClosed = true }
        multi.wake()
        thread.join()
    }

    private func post(_ message: Message) -> Bool {
        let isOpen = mailbox.withLock { mailbox in
            if !mailbox.isClosed { mailbox.messages.append(message) }
            return !mailbox.isClosed
        }
        if isOpen { multi.wake() }
        return isOpen
    }

    // MARK: The thread

    private func run() {
        var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
        while true {
            let (messages, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.messages.removeAll() }
                return (mailbox.messages, mailbox.isClosed)
            }
            for message in messages { handle(message, &transfers) }
            if isClosed { break }
            do throws(StoreError) {
                try multi.perform()
                while let (easy, code) = multi.nextFinished() {
                    guard let transfer = transfers.removeValue(forKey: easy) else { continue }
                    multi.remove(transfer.easy.raw)
                    transfer.finish(code)
                }
                try multi.wait(milliseconds: 60_000)
            } catch {
                // libcurl fails here only when it is out of memory: end the requests under way and continue with new ones.
                end(&transfers, error)
            }
        }
        end(&transfers, .closed)
    }

    private func handle(_ message: Message, _ transfers: inout [UnsafeMutableRawPointer: Transfer]) {
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

    private func end(_ transfers: inout [UnsafeMutableRawPointer: Transfer], _ error: StoreError) {
        for transfer in transfers.values {
            multi.remove(transfer.easy.raw)
            transfer.finish(error)
        }
        transfers.removeAll()
    }
}

internal import Curl
internal import Synchronization
internal import SystemIO

/// The thread that owns all transfers, and the mailbox through which other threads reach it.
///
/// `@unchecked` because of `multi`: other threads only call its `wake()`, which libcurl documents as safe from any thread. The
/// loop's own thread makes all other calls. The handle is freed with the last reference, after the thread has ended.
final class TransferLoop: @unchecked Sendable {
    private enum Message {
        case submit(FetchRequest)
        case cancel(FetchRequest.ID)
        case applySettings
    }

    private struct Mailbox {
        var messages: [Message] = []
        var isClosed = false
    }

    private let context: FetchContext
    private let multi: MultiHandle<FetchError>
    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<SystemThread?>(nil)

    /// Starts the thread. The owner has to call ``stop()``.
    init(_ context: FetchContext) throws(FetchError) {
        self.context = context
        multi = try MultiHandle<FetchError>(idleConnections: context.settings.configuration.concurrency)
        try start()
    }

    /// Submits a fetch; it fails at once if the loop was stopped.
    func submit(_ request: FetchRequest) {
        if !post(.submit(request)) { request.continuation.resume(returning: .failure(.closed)) }
    }

    /// Cancels a fetch that has not ended yet.
    func cancel(_ id: FetchRequest.ID) {
        post(.cancel(id))
    }

    /// Applies the limits of the context's new settings, which may start queued fetches.
    func applySettings() {
        post(.applySettings)
    }

    /// Ends all fetches and waits for the thread to end. A second call does nothing.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        mailbox.withLock { $0.isClosed = true }
        multi.wake()
        thread.join()
    }

    /// Hands a message to the loop's thread.
    ///
    /// - Returns: Whether the loop still accepts messages.
    @discardableResult
    private func post(_ message: Message) -> Bool {
        let isOpen = mailbox.withLock { mailbox in
            if !mailbox.isClosed { mailbox.messages.append(message) }
            return !mailbox.isClosed
        }
        if isOpen { multi.wake() }
        return isOpen
    }

    private func start() throws(FetchError) {
        // The thread blocks all signals, among them SIGPIPE from writes to a closed TLS connection.
        guard let started = SystemThread.start(name: "fetch", { self.run() }) else {
            throw .exhausted(cause: "no more threads")
        }
        thread.withLock { $0 = started }
    }

    private func run() {
        let driver = TransferDriver(context)
        while true {
            let (messages, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.messages.removeAll() }
                return (mailbox.messages, mailbox.isClosed)
            }
            for message in messages {
                switch message {
                case .submit(let request): driver.submit(request, on: multi)
                case .cancel(let id): driver.cancel(id, on: multi)
                case .applySettings: driver.applySettings(on: multi)
                }
            }
            if isClosed { break }
            do throws(FetchError) {
                try driver.advance(on: multi)
                try multi.wait(milliseconds: driver.waitLimit)
            } catch {
                // libcurl fails here only when it is out of memory: end the fetches in progress and continue with new ones.
                driver.finishAll(error, on: multi)
            }
        }
        driver.finishAll(.closed, on: multi)
    }
}

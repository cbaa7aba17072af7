internal import Synchronization
internal import SystemIO

/// The thread that owns all transfers, and the mailbox through which other threads reach it.
///
/// `@unchecked` for `multi` alone: of it other threads call only `wake`, which libcurl documents as safe from any thread;
/// all else happens on the loop's own thread, and the handle goes with the last reference, after the thread has ended.
final class TransferLoop: @unchecked Sendable {
    private enum Message {
        case submit(FetchRequest)
        case cancel(FetchRequest.ID)
    }

    private struct Mailbox {
        var messages: [Message] = []
        var isClosed = false
    }

    private let settings: FetchSettings
    private let metrics: FetchMetrics
    private let multi: MultiHandle
    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<SystemThread?>(nil)

    /// Sets up and starts the thread. Whoever makes a loop has to ``stop()`` it.
    init(settings: FetchSettings, metrics: FetchMetrics) throws(FetchError) {
        self.settings = settings
        self.metrics = metrics
        multi = try MultiHandle(idleConnections: settings.configuration.concurrency)
        try start()
    }

    /// Hands over a fetch; it is answered at once where the loop was stopped.
    func submit(_ request: FetchRequest) {
        let isOpen = mailbox.withLock { mailbox in
            if !mailbox.isClosed { mailbox.messages.append(.submit(request)) }
            return !mailbox.isClosed
        }
        if isOpen { multi.wake() } else { request.continuation.resume(returning: .failure(.closed)) }
    }

    /// Ends a fetch, if it has not ended yet.
    func cancel(_ id: FetchRequest.ID) {
        mailbox.withLock { $0.messages.append(.cancel(id)) }
        multi.wake()
    }

    /// Ends all fetches and waits for the thread's end. Calling it again does nothing.
    func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        mailbox.withLock { $0.isClosed = true }
        multi.wake()
        thread.join()
    }

    private func start() throws(FetchError) {
        // It takes no signals, among them the SIGPIPE of a TLS connection written to after its end.
        guard let started = SystemThread.start(name: "fetch", { self.run() }) else {
            throw .exhausted(cause: "no more threads")
        }
        thread.withLock { $0 = started }
    }

    private func run() {
        let driver = TransferDriver(settings: settings, metrics: metrics)
        while true {
            let (messages, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.messages.removeAll() }
                return (mailbox.messages, mailbox.isClosed)
            }
            for message in messages {
                switch message {
                case .submit(let request): driver.submit(request, on: multi)
                case .cancel(let id): driver.cancel(id, on: multi)
                }
            }
            if isClosed { break }
            do throws(FetchError) {
                try driver.advance(on: multi)
                try multi.wait(milliseconds: driver.patience)
            } catch {
                // libcurl says so only where it ran out of memory: end what is under way, go on with what comes.
                driver.finishAll(error, on: multi)
            }
        }
        driver.finishAll(.closed, on: multi)
    }
}

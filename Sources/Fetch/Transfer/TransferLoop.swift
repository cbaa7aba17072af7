internal import Glibc
internal import Synchronization

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
    private let thread = Mutex<pthread_t?>(nil)

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
        pthread_join(thread, nil)
    }

    private func start() throws(FetchError) {
        let context = Unmanaged.passRetained(self)
        var number = pthread_t()
        let code = pthread_create(
            &number, nil,
            { context in
                guard let context else { return nil }
                Unmanaged<TransferLoop>.fromOpaque(context).takeRetainedValue().run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw .exhausted(cause: "pthread_create: \(String(cString: strerror(code)))")
        }
        let started = number
        thread.withLock { $0 = started }
    }

    private func run() {
        Self.blockSignals()
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

    /// Signals are for other threads; and a TLS connection written to after its end raises SIGPIPE, which must not end the process.
    private static func blockSignals() {
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
    }
}

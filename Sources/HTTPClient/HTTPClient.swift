internal import CSystem
internal import Glibc
internal import Synchronization
internal import SystemIO

/// An HTTP client built on libcurl. It keeps connections open, limits concurrent calls, and enforces timeouts.
///
/// One thread runs all calls; callers only wait. Any thread.
///
/// ```swift
/// let client = try HTTPClient(name: "hooks", limits: .init(running: 16))
/// let response = try await client.send(ClientRequest("GET", "https://example.com/", timeout: .seconds(10)))
/// ```
///
/// `@unchecked` because of `multi`: other threads call only its `wake()`, which libcurl documents as thread-safe. The client's
/// own thread makes all other calls. The handle is freed with the last reference, after the thread has ended.
package final class HTTPClient: @unchecked Sendable {
    /// The maximum numbers of running and waiting calls, in total and per key (``HTTPCall/key``).
    package struct Limits: Hashable, Sendable {
        package let running: Int
        package let runningPerKey: Int
        package let waiting: Int
        package let waitingPerKey: Int

        package init(running: Int, runningPerKey: Int = .max, waiting: Int = .max, waitingPerKey: Int = .max) {
            self.running = running
            self.runningPerKey = runningPerKey
            self.waiting = waiting
            self.waitingPerKey = waitingPerKey
        }
    }

    /// The client's counters since its start, and its current load.
    package struct Counters: Sendable {
        /// Bytes of received bodies, including those of failed calls.
        package internal(set) var bytes = 0
        /// Connections opened.
        package internal(set) var connections = 0
        /// Connections refused because of their address or port.
        package internal(set) var refusedAddresses = 0
        /// Calls with a request in progress.
        package internal(set) var active = 0
        /// Calls waiting in the queue.
        package internal(set) var waiting = 0

        package init() {}
    }

    enum Message {
        case submit(Int, @Sendable () -> any HTTPCall)
        case cancel(Int)
        case limit(Limits)
    }

    private struct Mailbox {
        var messages: [Message] = []
        var isClosed = false
    }

    private let multi: MultiHandle
    private let mailbox = Mutex(Mailbox())
    private let thread = Mutex<SystemThread?>(nil)
    private let lastID = Atomic(0)
    private let counted = Mutex(Counters())

    /// Starts the thread. The owner must call ``stop()``.
    ///
    /// - Parameters:
    ///   - name: The name of the thread, at most 15 bytes.
    ///   - limits: `running` is also the number of idle connections to keep.
    /// - Throws: ``HTTPError/exhausted(cause:)`` if the process has no memory or threads left.
    package init(name: String, limits: Limits) throws(HTTPError) {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        multi = try MultiHandle(idleConnections: limits.running)
        // The thread blocks all signals, including SIGPIPE from writes to a closed TLS connection.
        guard let started = SystemThread.start(name: name, { self.run(limits) }) else {
            throw .exhausted(cause: "no thread can be started: \(SystemThread.shortage)")
        }
        thread.withLock { $0 = started }
    }

    /// Sends a request and returns its response. Cancelling the task ends the request at once.
    package func send(_ request: ClientRequest) async throws(HTTPError) -> ClientResponse {
        let result = await run { (continuation: CheckedContinuation<Result<ClientResponse, HTTPError>, Never>) in
            BufferedCall(request) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Sends a request on the calling thread and returns its response. Blocks, and does not keep the connection.
    package static func perform(_ request: ClientRequest) throws(HTTPError) -> ClientResponse {
        guard CurlLibrary.prepare() else { throw .exhausted(cause: "curl_global_init") }
        var result: Result<ClientResponse, HTTPError> = .failure(.closed)
        let call = BufferedCall(request) { result = $0 }
        if let request = call.nextRequest() {
            let transfer = try HTTPTransfer(request, for: call, timeLeft: request.timeout, sockets: SocketTable())
            _ = call.continues(after: transfer.result(curl_easy_perform(transfer.easy.raw)))
        }
        call.end(nil)
        return try result.get()
    }

    /// Runs a call, which resumes the continuation when it ends. Cancelling the task ends the call at once, or after its lookup
    /// (``HTTPCall/finishesLookup``).
    ///
    /// - Parameter makeCall: Called once, on the client's thread unless the client is stopped.
    package func run<Value: Sendable>(
        _ makeCall: @escaping @Sendable (CheckedContinuation<Value, Never>) -> any HTTPCall
    ) async -> Value {
        let id = lastID.add(1, ordering: .relaxed).newValue
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                if !post(.submit(id) { makeCall(continuation) }) {
                    makeCall(continuation).end(.closed)
                } else if Task.isCancelled {
                    // The cancellation handler may have run before the submission and cancelled nothing.
                    post(.cancel(id))
                }
            }
        } onCancel: {
            post(.cancel(id))
        }
    }

    /// Replaces the limits without ending any call. Waiting calls stay queued even if they exceed the new limit.
    package func setLimits(_ limits: Limits) {
        post(.limit(limits))
    }

    package var counters: Counters { counted.withLock { $0 } }

    /// Ends all calls with ``HTTPError/closed`` and waits for the thread to end. Later calls do nothing.
    package func stop() {
        guard let thread = thread.withLock({ $0.take() }) else { return }
        mailbox.withLock { $0.isClosed = true }
        multi.wake()
        thread.join()
    }

    /// Posts a message to the client's thread. Returns false after ``stop()``.
    @discardableResult
    private func post(_ message: Message) -> Bool {
        let isOpen = mailbox.withLock { mailbox in
            if !mailbox.isClosed { mailbox.messages.append(message) }
            return !mailbox.isClosed
        }
        if isOpen { multi.wake() }
        return isOpen
    }

    // MARK: The client's thread

    /// The backoff after libcurl errors that affect all transfers, without which the thread would spin on a lasting error.
    private static var pauses: Backoff { Backoff(first: .milliseconds(2), longest: .milliseconds(200)) }

    private func run(_ limits: Limits) {
        let driver = CallDriver(limits) { counters in self.counted.withLock { $0 = counters } }
        var failures = 0
        while true {
            let (messages, isClosed) = mailbox.withLock { mailbox in
                defer { mailbox.messages.removeAll() }
                return (mailbox.messages, mailbox.isClosed)
            }
            for message in messages { driver.handle(message, on: multi) }
            if isClosed { break }
            do throws(HTTPError) {
                try driver.advance(on: multi)
                try multi.wait(milliseconds: driver.waitLimit)
                failures = 0
            } catch {
                // libcurl fails here only if it is out of memory: end the transfers in progress and continue with new ones.
                driver.endAll(error, on: multi)
                failures += 1
                usleep(UInt32(Self.pauses.pause(after: failures) / .microseconds(1)))
            }
        }
        driver.endAll(.closed, on: multi)
    }
}

internal import CLinux
internal import Glibc

/// An operating-system thread, which its creator must join or detach. All signals are blocked on it, so that the main thread
/// receives them and a write to a closed pipe causes an error.
package struct SystemThread: Sendable {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    private let handle: pthread_t

    /// Why the system creates no thread, as far as it says, for the end of a message.
    package static let shortage =
        "the process, its user or its container has too many, or too little memory for another stack (ulimit -v)"

    /// Runs `body` on a new thread. Returns nil if the system cannot create a thread.
    ///
    /// - Parameter name: The name that `top` shows, at most 15 bytes.
    package static func start(name: String, _ body: @escaping @Sendable () -> Void) -> SystemThread? {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Body(name: name, body))
        let code = pthread_create(
            &handle, nil,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                // Even the SIGPIPE of sendfile(2).
                var all = sigset_t()
                sigfillset(&all)
                pthread_sigmask(SIG_BLOCK, &all, nil)
                clinux_name_thread(body.name)
                body.run()
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            return nil
        }
        return SystemThread(handle: handle)
    }

    /// Runs blocking work on its own thread and returns the result; nil if the system cannot create a thread. Suspends without
    /// blocking. For rare, possibly long work whose concurrency the caller bounds.
    package static func run<Result: Sendable>(name: String, _ work: @escaping @Sendable () -> Result) async -> Result? {
        await withCheckedContinuation { continuation in
            guard let thread = start(name: name, { continuation.resume(returning: work()) }) else {
                continuation.resume(returning: nil)
                return
            }
            thread.detach()
        }
    }

    /// Returns whether this process can start `count` more threads at present. Starts them and waits for their ends.
    package static func canStart(_ count: Int) -> Bool {
        let end = Semaphore()
        let threads = (0..<count).compactMap { _ in start(name: "gifreel-try") { end.wait() } }
        for _ in threads { end.signal() }
        for thread in threads { thread.join() }
        return threads.count == count
    }

    /// Waits until the thread ends. Call this once, from another thread.
    package func join() {
        pthread_join(handle, nil)
    }

    /// Releases the thread's resources when it ends. Call this once, instead of ``join()``.
    package func detach() {
        pthread_detach(handle)
    }
}

/// A counting semaphore for threads (POSIX `sem_t`). Waiting blocks the thread, so tasks must not wait.
package final class Semaphore: Sendable {
    private nonisolated(unsafe) let handle: UnsafeMutablePointer<sem_t>

    /// - Parameter value: The initial count.
    package init(value: UInt32 = 0) {
        handle = .allocate(capacity: 1)
        sem_init(handle, 0, value)
    }

    deinit {
        sem_destroy(handle)
        handle.deallocate()
    }

    /// Waits while the count is 0, then decrements it.
    package func wait() {
        while sem_wait(handle) != 0 && errno == EINTR {}
    }

    /// Decrements the count as ``wait()`` does, but waits no longer than `limit`.
    ///
    /// - Returns: Whether the count was decremented.
    package func wait(for limit: Duration) -> Bool {
        // No caller waits longer than a day, whose nanoseconds do not overflow.
        let (seconds, attoseconds) = max(.zero, min(limit, .seconds(86_400))).components
        return clinux_semaphore_wait(handle, seconds * 1_000_000_000 + attoseconds / 1_000_000_000) == 0
    }

    /// Increments the count, which lets one waiting thread continue.
    package func signal() {
        sem_post(handle)
    }
}

/// The machine's processors.
package enum Processors {
    /// The number of processors online, at least one.
    package static var available: Int { max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))) }
}

internal import CLinux
internal import Glibc

/// A thread of the operating system, which somebody has to join or to detach. It takes no signals: those are for the main
/// thread.
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

    /// Runs `body` in a new thread; nil when the system gives no more threads.
    ///
    /// - Parameter name: As `top` shows it, at most 15 bytes.
    package static func start(name: String, _ body: @escaping @Sendable () -> Void) -> SystemThread? {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Body(name: name, body))
        let code = pthread_create(
            &handle, nil,
            { context in
                guard let context else { return nil }
                let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
                clinux_block_signals()
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

    /// Waits for the thread's end. To be called once, and not from the thread itself.
    package func join() {
        pthread_join(handle, nil)
    }

    /// Lets the thread end by itself. To be called once, in place of ``join()``.
    package func detach() {
        pthread_detach(handle)
    }
}

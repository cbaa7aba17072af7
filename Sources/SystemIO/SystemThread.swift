internal import CLinux
package import Glibc

/// Starts a thread of the operating system.
package enum SystemThread {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, _ run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    /// Runs `body` in a new thread that its caller has to join; nil when the system gives no more threads.
    ///
    /// - Parameter name: As `top` shows it, at most 15 bytes.
    package static func start(name: String, _ body: @escaping @Sendable () -> Void) -> pthread_t? {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Body(name: name, body))
        let code = pthread_create(&thread, nil, { context in
            guard let context else { return nil }
            let body = Unmanaged<Body>.fromOpaque(context).takeRetainedValue()
            clinux_name_thread(body.name)
            body.run()
            return nil
        }, context.toOpaque())
        guard code == 0 else {
            context.release()
            return nil
        }
        return thread
    }
}

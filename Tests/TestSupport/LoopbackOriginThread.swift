internal import Glibc

/// A thread of a test's helper, to be joined once.
final class LoopbackThread: Sendable {
    private let number: pthread_t

    init(_ body: @escaping @Sendable () -> Void) throws {
        final class Box: Sendable {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        let context = Unmanaged.passRetained(Box(body))
        var number = pthread_t()
        let code = pthread_create(
            &number, nil,
            { context in
                if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, context.toOpaque())
        guard code == 0 else {
            context.release()
            throw LoopbackFailure(operation: "pthread_create", code: code)
        }
        self.number = number
    }

    func join() {
        pthread_join(number, nil)
    }
}

internal import Glibc
internal import Synchronization

/// A small HTTP/1.1 origin on 127.0.0.1 that answers each path with a script, which can contain faults.
///
/// It has a thread per connection, counts requests, and closes all connections on ``stop()``.
package final class LoopbackOrigin: Sendable {
    package typealias Handler = @Sendable (LoopbackRequest) -> LoopbackAnswer

    /// The port, which was free at the start.
    package let port: Int
    private let listener: Int32
    private let state = Mutex(State())

    private struct State {
        var handlers: [String: Handler] = [:]
        var requests: [LoopbackRequest] = []
        var counts: [String: Int] = [:]
        var connections: [Int32: LoopbackThread] = [:]
        var finished: [LoopbackThread] = []
        var acceptor: LoopbackThread?
        var accepted = 0
        var isStopped = false
    }

    /// Starts listening. Paths without a handler are answered 404.
    package init(_ handlers: [String: Handler] = [:]) throws {
        (listener, port) = try LoopbackSocket.listen()
        state.withLock { $0.handlers = handlers }
        let acceptor = try LoopbackThread { [self] in acceptAll() }
        state.withLock { $0.acceptor = acceptor }
    }

    /// Answers `path` (without query) with `handler` from now on.
    package func on(_ path: String, _ handler: @escaping Handler) {
        state.withLock { $0.handlers[path] = handler }
    }

    /// Answers `path` with the same answer each time.
    package func on(_ path: String, _ answer: LoopbackAnswer) {
        on(path) { _ in answer }
    }

    /// The URL of `target`, which begins with a slash.
    package func url(_ target: String, host: String = "127.0.0.1") -> String {
        "http://\(host):\(port)\(target)"
    }

    /// The number of requests for `path` (without query).
    package func count(_ path: String) -> Int {
        state.withLock { $0.counts[path, default: 0] }
    }

    /// Blocks until `path` (without query) was requested `count` times.
    @available(*, noasync)
    package func waitForRequests(_ count: Int = 1, for path: String, file: String = #fileID, line: Int = #line) throws {
        try blockUntil("\(count) requests for \(path), of which \(self.count(path)) came", file: file, line: line) {
            self.count(path) >= count
        }
    }

    /// All requests so far, in order.
    package var requests: [LoopbackRequest] {
        state.withLock { $0.requests }
    }

    /// The number of connections that were accepted so far.
    package var connections: Int {
        state.withLock { $0.accepted }
    }

    /// Closes all connections and waits for all threads. Calling it again does nothing.
    package func stop() {
        let (wasStopped, acceptor) = state.withLock { state in
            defer { state.isStopped = true }
            return (state.isStopped, state.acceptor)
        }
        if wasStopped { return }
        // This ends a blocking accept or recv on Linux, which closing alone does not.
        shutdown(listener, Int32(SHUT_RDWR))
        acceptor?.join()
        let threads = state.withLock { state in
            for connection in state.connections.keys { shutdown(connection, Int32(SHUT_RDWR)) }
            return Array(state.connections.values) + state.finished
        }
        for thread in threads { thread.join() }
        close(listener)
    }

    private func acceptAll() {
        while true {
            let connection = accept(listener, nil, nil)
            let isStopped = state.withLock { $0.isStopped }
            if connection < 0 {
                if isStopped || (errno != EINTR && errno != ECONNABORTED) { return }
                continue
            }
            if isStopped {
                close(connection)
                return
            }
            begin(connection)
        }
    }

    private func begin(_ connection: Int32) {
        // The lock is held during the start, so that the new thread is in the list before it ends.
        let done = state.withLock { state in
            defer { state.finished.removeAll() }
            state.accepted += 1
            do {
                state.connections[connection] = try LoopbackThread { [self] in serve(connection) }
            } catch {
                close(connection)
            }
            return state.finished
        }
        for thread in done { thread.join() }
    }

    private func serve(_ connection: Int32) {
        var socket = LoopbackSocket(connection)
        while let head = socket.readHead() {
            guard var request = LoopbackRequest(head: head),
                let body = socket.readBody(request.headers["content-length"].flatMap { Int($0) } ?? 0)
            else { break }
            request.body = body
            let handler = note(&request)
            let answer = handler?(request) ?? .status(404)
            guard socket.play(answer.steps), answer.keepsAlive else { break }
        }
        state.withLock { state in
            // Closed under the lock, because the kernel may reuse the number at once.
            if let thread = state.connections.removeValue(forKey: connection) { state.finished.append(thread) }
            close(connection)
        }
    }

    /// Numbers and records a request, and returns the handler of its path.
    private func note(_ request: inout LoopbackRequest) -> Handler? {
        state.withLock { state in
            state.counts[request.path, default: 0] += 1
            request.number = state.counts[request.path, default: 0]
            state.requests.append(request)
            return state.handlers[request.path]
        }
    }
}

/// A thread of a test helper, which must be joined once.
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

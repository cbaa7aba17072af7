internal import DequeModule
internal import Glibc
internal import Synchronization
internal import SystemIO

/// An established connection: pending output, requests that await replies, and the parser. Not thread-safe.
final class Session {
    /// Requests in the order of their replies. A finished request stays until its replies have arrived.
    private(set) var requests: Deque<PendingRequest> = []
    private let transport: RedisTransport
    private let reader = ReplyReader()
    private let isSubscription: Bool
    private var output: [UInt8] = []
    /// The replies received so far for the first request.
    private var replies: [RedisValue] = []
    private var lastInput: Duration
    private var hasPinged = false
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)

    /// The name and version of the server, such as `redis 7.0.15`.
    private(set) var server = ""
    /// The reason, other than a missing right, why the server refuses the commands of nodes.
    private(set) var refusal: RedisRefusal?

    /// Connects, logs in, checks the server's version, selects the database, subscribes and checks rights. Blocks.
    init(
        _ address: RedisAddress, channel: String?, rights: ServerRights? = nil, within limit: Duration,
        _ time: TimeSource
    ) throws(RedisError) {
        transport = try RedisTransport(address, within: limit)
        isSubscription = channel != nil
        lastInput = time.now
        let end = time.now + limit
        try greet(address, channel, until: end, time)
        if let rights {
            let replies = try exchange(rights.commands, until: end, time)
            let missing = rights.missing(in: replies)
            guard missing.isEmpty else {
                throw .unavailable("the user lacks rights in the server: \(missing.joined(separator: " "))")
            }
            for case .error(let error) in replies where error.concernsServer { refusal = error }
        }
    }

    deinit {
        buffer.deallocate()
    }

    var descriptor: Int32 { transport.descriptor }
    var wantsWrite: Bool { transport.wantsWrite }

    func add(_ queue: [(PendingRequest, [UInt8])]) {
        for (request, bytes) in queue {
            requests.append(request)
            output += bytes
        }
    }

    func write() throws(RedisError) {
        if !output.isEmpty { try transport.write(&output) }
    }

    /// Fails the requests whose deadline has passed.
    ///
    /// - Returns: The time at which to call this again; nil if there are no requests.
    /// - Throws: If the oldest reply is overdue by `stallLimit`.
    func expire(_ now: Duration, stallLimit: Duration) throws(RedisError) -> Duration? {
        var next: Duration?
        for (index, request) in requests.enumerated() {
            var moment = request.deadline
            if moment <= now {
                request.finish(.failure(.timedOut))
                guard index == 0 else { continue }
                moment += stallLimit
                if moment <= now { throw .timedOut }
            }
            next = min(next ?? moment, moment)
        }
        return next
    }

    /// Pings an idle subscription, and throws if it then stays silent. Returns the time at which to call this again.
    func pingIfIdle(_ now: Duration, every interval: Duration) throws(RedisError) -> Duration {
        if now < lastInput + interval { return lastInput + interval }
        if hasPinged {
            guard now < lastInput + interval * 2 else { throw .timedOut }
        } else {
            hasPinged = true
            output += RedisCommand(.status, ["PING"]).bytes
        }
        return lastInput + interval * 2
    }

    /// Reads what has arrived, and completes requests or delivers messages.
    ///
    /// Call this once at the start as well: messages may have arrived with the confirmation of the subscription.
    ///
    /// - Returns: The number of requests that have received all their replies.
    func read(now: Duration, _ onMessage: (([UInt8]) -> Void)) throws(RedisError) -> Int {
        var finished = 0
        while true {
            while let value = try reader.next() {
                if isSubscription {
                    if let message = try Self.message(value) { onMessage(message) }
                } else if try take(value) {
                    finished += 1
                }
            }
            guard try receive() else { return finished }
            (lastInput, hasPinged) = (now, false)
        }
    }

    /// Reads the bytes that have arrived. Returns whether there were any.
    private func receive() throws(RedisError) -> Bool {
        let count = try transport.read(into: buffer)
        if count > 0 { try reader.append(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        return count > 0
    }

    /// Assigns a reply to the first request, and returns whether the request now has all its replies.
    private func take(_ value: RedisValue) throws(RedisError) -> Bool {
        guard let request = requests.first else { throw .nonsense("a reply that no command has asked for") }
        guard request.shapes[replies.count].matches(value) else { throw .nonsense("a reply of the wrong type") }
        replies.append(value)
        guard replies.count == request.shapes.count else { return false }
        request.finish(.success(replies))
        replies = []
        requests.removeFirst()
        return true
    }

    /// The payload of a message; nil for the reply to `PING`.
    private static func message(_ value: RedisValue) throws(RedisError) -> [UInt8]? {
        guard case .array(let parts) = value, case .bytes(let kind)? = parts.first else {
            throw .nonsense("no message on a subscription")
        }
        if kind == Array("pong".utf8) { return nil }
        guard kind == Array("message".utf8), parts.count == 3, case .bytes(let payload) = parts[2] else {
            throw .nonsense("no message on a subscription")
        }
        return payload
    }

    // MARK: Start

    private func greet(
        _ address: RedisAddress, _ channel: String?, until end: Duration, _ time: TimeSource
    ) throws(RedisError) {
        var commands: [RedisCommand] = []
        if let password = address.password {
            commands.append(RedisCommand(.status, ["AUTH"] + [address.user, password].compactMap(\.self)))
        }
        // `HELLO` needs no rights.
        let hello = commands.count
        commands.append(RedisCommand(.array, ["HELLO", "2"]))
        if address.database != 0 { commands.append(RedisCommand(.status, ["SELECT", address.database])) }
        if let channel { commands.append(RedisCommand(.array, ["SUBSCRIBE", channel])) }
        for (index, value) in try exchange(commands, until: end, time).enumerated() {
            if case .error(let refusal) = value {
                guard index == hello, refusal.text.lowercased().contains("unknown command") else { throw .refused(refusal) }
                throw Self.tooOld("older than redis 6.0")
            }
            guard commands[index].shape.matches(value) else { throw .nonsense("a reply of the wrong type") }
            if index == hello { server = try Self.server(value) }
        }
        lastInput = time.now
    }

    /// The oldest major version with all commands that nodes use.
    private static let leastMajor = 7

    /// Returns the server's name, `redis` or `valkey`, and its version from the reply to `HELLO`. Throws if it is too old.
    private static func server(_ reply: RedisValue) throws(RedisError) -> String {
        let fields = try reply.fields()
        guard try fields["mode"]?.text() != "sentinel" else {
            throw .unavailable("the server is a Sentinel; the address of Redis or Valkey itself is required")
        }
        guard let version = try fields["version"]?.text().prefix(32) else { throw .nonsense("a greeting without a version") }
        let server = "\(try fields["server"]?.text().prefix(32) ?? "redis") \(version)"
        guard let major = version.split(separator: ".").first.flatMap({ Int($0) }), major >= leastMajor else {
            throw tooOld(server)
        }
        return server
    }

    private static func tooOld(_ server: String) -> RedisError {
        .unavailable("the server is \(server); version 7.0 or newer is required")
    }

    /// Sends commands and waits for a reply to each. Throws an error that the server sends before it closes the connection.
    private func exchange(
        _ commands: [RedisCommand], until end: Duration, _ time: TimeSource
    ) throws(RedisError) -> [RedisValue] {
        var values: [RedisValue] = []
        output = commands.flatMap(\.bytes)
        while values.count < commands.count {
            var failure: RedisError?
            do throws(RedisError) {
                try write()
                guard time.now < end else { throw .unavailable("the server does not reply to a new connection in time") }
                var interest = pollfd(
                    fd: descriptor, events: Int16(POLLIN) | (output.isEmpty ? 0 : Int16(POLLOUT)), revents: 0)
                _ = poll(&interest, 1, Int32(clamping: (end - time.now).milliseconds + 1))
            } catch {
                failure = error
            }
            do throws(RedisError) {
                // Reads to the end, because poll(2) does not see bytes that libcurl has read ahead.
                while try receive() {}
            } catch {
                failure = failure ?? error
                // After a reset, bytes that had arrived can still be read.
                _ = try? receive()
            }
            while values.count < commands.count, let value = try reader.next() { values.append(value) }
            // A server with too many clients sends an error before it reads anything.
            guard let failure, values.count < commands.count else { continue }
            if case .error(let refusal)? = values.last { throw .refused(refusal) }
            throw failure
        }
        return values
    }
}

/// A pipeline of commands that waits for its replies. Any thread.
final class PendingRequest: Sendable {
    let shapes: [ReplyShape]
    let deadline: Duration
    private let result = Mutex<Result<[RedisValue], RedisError>?>(nil)
    private let waiters = Waiters()

    init(_ shapes: [ReplyShape], deadline: Duration) {
        self.shapes = shapes
        self.deadline = deadline
    }

    /// Completes the request unless it is complete already. The connection skips replies to a request that is complete.
    func finish(_ new: Result<[RedisValue], RedisError>) {
        result.withLock { $0 = $0 ?? new }
        waiters.notify()
    }

    /// Waits for the replies. A cancelled task completes the request with ``RedisError/cancelled``.
    func replies() async throws(RedisError) -> [RedisValue] {
        await waiters.wait { result.withLock { $0 != nil } }
        finish(.failure(.cancelled))
        return try result.withLock { $0 }?.get() ?? []
    }
}

/// Rights on the server, and the commands that test them.
struct ServerRights: Sendable {
    /// The names of the rights in the syntax of `ACL SETUSER`, each with a command that requires the right.
    let trials: [(name: String, words: [any RedisArgument])]
    let pattern: String

    var commands: [RedisCommand] { trials.map { RedisCommand(.array, $0.words) } }

    /// Returns the missing rights in the syntax of `ACL SETUSER`. Ignores other errors.
    func missing(in replies: [RedisValue]) -> [String] {
        var missing: [String] = []
        for (trial, reply) in zip(trials, replies) {
            guard case .error(let refusal) = reply else { continue }
            let text = refusal.text.lowercased()
            // A server may lack a command for all users (`rename-command`).
            guard refusal.word == "NOPERM" || text.contains("unknown command") else { continue }
            let right = text.contains("channel") ? "&\(pattern)" : text.contains(" key") ? "~\(pattern)" : "+\(trial.name)"
            if !missing.contains(right) { missing.append(right) }
        }
        return missing
    }
}

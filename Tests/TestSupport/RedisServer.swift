internal import Foundation
internal import Glibc
internal import Synchronization

/// A real `redis-server` in its own directory, reachable by a Unix socket and by a port of 127.0.0.1.
package final class RedisServer: Sendable {
    package static let isAvailable = access(executable, X_OK) == 0
    private static let executable = "/usr/bin/redis-server"

    /// The port on 127.0.0.1.
    package let port: Int
    private let folder: URL
    private let options: [String]
    private let process = Mutex<ChildProcess?>(nil)

    /// Starts a server, and waits until it replies. The caller must call ``stop()``.
    ///
    /// - Parameters:
    ///   - options: Further arguments, such as `--requirepass`, `secret`.
    ///   - isDurable: Whether every write is on disk before its reply.
    ///   - usesTLS: Whether the port accepts TLS only, with ``certificate``.
    ///   - isCluster: Whether it is a node of a Redis Cluster, which has no slots yet.
    package init(
        options: [String] = [], isDurable: Bool = false, usesTLS: Bool = false, isCluster: Bool = false
    ) async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-redis-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let (socket, port) = try LoopbackSocket.listen()
        close(socket)
        self.port = port
        var all = ["--unixsocket", folder.path + "/redis.sock", "--bind", "127.0.0.1", "--dir", folder.path]
        all += ["--save", "", "--appendonly", isDurable ? "yes" : "no", "--appendfsync", "always"]
        if usesTLS {
            let openssl = try ChildProcess(
                URL(filePath: "/usr/bin/openssl"),
                [
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder.path + "/key.pem", "-out",
                    folder.path + "/certificate.pem", "-days", "2", "-subj", "/CN=gifreel", "-addext",
                    "subjectAltName=IP:127.0.0.1",
                ])
            try await waitUntil("openssl ends") { !openssl.isRunning }
            guard FileManager.default.fileExists(atPath: folder.path + "/certificate.pem") else {
                throw LoopbackFailure(operation: "openssl: \(openssl.log)", code: 0)
            }
            all += ["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "no"]
            all += ["--tls-cert-file", folder.path + "/certificate.pem", "--tls-key-file", folder.path + "/key.pem"]
            all += ["--tls-ca-cert-file", folder.path + "/certificate.pem"]
        } else {
            all += ["--port", String(port)]
        }
        if isCluster {
            let (socket, busPort) = try LoopbackSocket.listen()
            close(socket)
            all += ["--cluster-enabled", "yes", "--cluster-port", String(busPort)]
        }
        self.options = all + options
        try await start()
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// `unix:/…`
    package var unixAddress: String { "unix:\(folder.path)/redis.sock" }
    /// `redis://127.0.0.1:…`
    package var address: String { "redis://127.0.0.1:\(port)" }
    /// The server's own certificate, in PEM.
    package var certificate: String { folder.path + "/certificate.pem" }

    /// Starts the server again, with the data that it had saved.
    package func start() async throws {
        let started = try ChildProcess(URL(filePath: Self.executable), options)
        process.withLock { $0 = started }
        try await waitUntil("redis-server replies: \(started.log)") {
            started.isRunning && FileManager.default.fileExists(atPath: folder.path + "/redis.sock")
                && (try? Self.command("PING", folder.path + "/redis.sock").first) != nil
        }
    }

    /// Kills the server, as in a crash.
    package func kill() throws {
        guard let running = process.withLock({ $0.take() }) else { return }
        Glibc.kill(running.identifier, SIGKILL)
        _ = try running.finish()
        unlink(folder.path + "/redis.sock")
    }

    /// Stops (SIGSTOP) or continues the server: connections stay open without replies. Returns when it has stopped.
    package func pause(_ isPaused: Bool) {
        guard let number = process.withLock({ $0?.identifier }) else { return }
        _ = Glibc.kill(number, isPaused ? SIGSTOP : SIGCONT)
        guard isPaused else { return }
        // A server that is busy on another processor would answer for a moment (proc_pid_stat(5)).
        try? blockUntil("the stop of the server", within: .seconds(10)) {
            let text = try? String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
            return text?.split(separator: ")").last?.hasPrefix(" T") != false
        }
    }

    package func stop() {
        pause(false)
        try? kill()
    }

    /// Runs a command on a new connection, and returns the reply's bytes as text.
    @discardableResult
    package func run(_ arguments: String...) throws -> String {
        try run(arguments)
    }

    /// Runs a command as above.
    package func run(_ arguments: [String]) throws -> String {
        let command = arguments.map { "\"\($0)\"" }.joined(separator: " ")
        return try Self.command(command, folder.path + "/redis.sock")
    }

    /// The number of calls of commands since the start, without those that only read statistics.
    package func commandCalls() throws -> [String: Int] {
        var calls: [String: Int] = [:]
        for line in try run("INFO", "commandstats").split(whereSeparator: \.isNewline) where line.hasPrefix("cmdstat_") {
            let parts = line.dropFirst(8).split(separator: ":", maxSplits: 1)
            let count = parts.last?.split(separator: ",").first?.split(separator: "=").last
            if let name = parts.first, let count = count.flatMap({ Int($0) }) { calls[String(name)] = count }
        }
        calls["info"] = nil
        return calls
    }

    /// Sends one line, and reads until the connection is silent after a complete reply.
    private static func command(_ line: String, _ path: String) throws -> String {
        let number = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard number >= 0 else { throw LoopbackFailure(operation: "socket", code: errno) }
        defer { close(number) }
        // A server that does not reply, such as a paused one, must not block the caller's own limit.
        var limit = timeval(tv_sec: 10, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(number, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        guard isConnected else { throw LoopbackFailure(operation: "connect", code: errno) }
        // After QUIT the server closes the connection, which marks the end of the reply.
        let request = Array((line + "\r\nQUIT\r\n").utf8)
        guard send(number, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else {
            throw LoopbackFailure(operation: "send", code: errno)
        }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(number, &piece, piece.count, 0)
            if count < 0 { throw LoopbackFailure(operation: "recv", code: errno) }
            if count == 0 { break }
            bytes += piece.prefix(count)
        }
        // The last line is the reply to QUIT.
        return String(decoding: bytes.dropLast("+OK\r\n".utf8.count), as: UTF8.self)
    }
}

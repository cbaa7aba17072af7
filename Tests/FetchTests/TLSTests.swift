import Fetch
import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@Suite("TLS certificates are verified", .enabled(if: TLSOrigin.isAvailable)) struct TLSTests {
    private func failure(_ url: String, trusting authorities: String?) async throws -> FetchError? {
        let fetcher = try Fetcher(trusting: authorities)
        defer { fetcher.shutdown() }
        return try await fetcher.failure(url)
    }

    @Test func certificateMustBeTrustedAndNameTheHost() async throws {
        let origin = try TLSOrigin(serving: TestGIF.dot)
        defer { origin.stop() }
        let url = "https://127.0.0.1:\(origin.port)/a.gif"
        #expect(try await failure(url, trusting: origin.certificate) == nil)
        guard case .failed(.tls) = try await failure(url, trusting: nil) else {
            Issue.record("an untrusted certificate was accepted")
            return
        }
        guard case .failed(.tls) = try await failure("https://localhost:\(origin.port)/a.gif", trusting: origin.certificate)
        else {
            Issue.record("a certificate for another host was accepted")
            return
        }
        guard case .exhausted = try await failure(url, trusting: "/nowhere/authorities.pem") else {
            Issue.record("authorities that cannot be read are not the origin's fault")
            return
        }
    }
}

@Suite(
    "A TLS connection is reused after a complete response", .enabled(if: TLSOrigin.isAvailable), .timeLimit(.minutes(10)))
struct TLSReuseTests {
    @Test func surplusOfAResponseIsNotReadAsTheNextResponse() async throws {
        let origin = try TLSOrigin(serving: nil)
        defer { origin.stop() }
        let fetcher = try Fetcher(trusting: origin.certificate)
        defer { fetcher.shutdown() }
        let url = "https://127.0.0.1:\(origin.port)"
        async let first = fetcher.source(url + "/a.gif")
        try await waitUntil("the first request") { origin.hasPrinted("/a.gif") }
        try origin.send(TestGIF.dot)
        let whole = try await first
        #expect(whole.count == TestGIF.dot.count)
        try origin.send(TestGIF.large(1000))
        try await waitUntil("the surplus") { origin.unreadBytes > 1000 }
        async let next = fetcher.source(url + "/b.gif")
        try await waitUntil("the next request") { origin.hasPrinted("/b.gif") }
        try origin.send(TestGIF.dot)
        let other = try await next
        #expect(other.count == TestGIF.dot.count)
        #expect(fetcher.counters().connections == 2)
    }

    /// OpenSSL reads through libcurl, which crashes if the connection is reset while it is not within a call of libcurl.
    @Test func nothingIsReadFromAConnectionBeforeTheRequest() async throws {
        let origin = try TLSOrigin(serving: nil)
        defer { origin.stop() }
        let fetcher = try Fetcher(trusting: origin.certificate)
        defer { fetcher.shutdown() }
        for path in ["/a.gif", "/b.gif"] {
            async let source = fetcher.source("https://127.0.0.1:\(origin.port)\(path)")
            try await waitUntil("the request") { origin.hasPrinted(path) }
            try origin.send(TestGIF.dot)
            let whole = try await source
            #expect(whole.count == TestGIF.dot.count)
            if path == "/a.gif" {
                try origin.updateKey()
                try await waitUntil("the new key") { origin.unreadBytes > 0 }
            }
        }
        #expect(fetcher.counters().connections == 2)
    }

    /// With HTTP/2, empty frames without a pause would keep libcurl 7.88 from all other transfers.
    @Test func anOriginThatPrefersHTTP2IsAskedByHTTP11() async throws {
        let origin = try TLSOrigin(serving: nil)
        defer { origin.stop() }
        let fetcher = try Fetcher(trusting: origin.certificate)
        defer { fetcher.shutdown() }
        async let source = fetcher.source("https://127.0.0.1:\(origin.port)/a.gif")
        try await waitUntil("the request") { origin.hasPrinted("GET /a.gif HTTP/1.1") }
        try origin.send(TestGIF.dot)
        let whole = try await source
        #expect(whole.count == TestGIF.dot.count)
    }

    @Test func aConnectionWithoutSurplusIsReused() async throws {
        let origin = try TLSOrigin(serving: nil)
        defer { origin.stop() }
        let fetcher = try Fetcher(trusting: origin.certificate)
        defer { fetcher.shutdown() }
        for path in ["/a.gif", "/b.gif", "/c.gif"] {
            async let source = fetcher.source("https://127.0.0.1:\(origin.port)\(path)")
            try await waitUntil("the request") { origin.hasPrinted(path) }
            try origin.send(TestGIF.dot)
            let whole = try await source
            #expect(whole.count == TestGIF.dot.count)
        }
        #expect(fetcher.counters().connections == 1)
    }
}

extension Fetcher {
    /// A fetcher that may fetch from 127.0.0.1 and has time on a busy machine.
    fileprivate convenience init(trusting authorities: String?) throws {
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        configuration.connectTimeout = .seconds(60)
        configuration.timeout = .seconds(60)
        configuration.certificateAuthorities = authorities
        try self.init(configuration: configuration)
    }
}

/// An HTTPS origin on 127.0.0.1 with a self-signed certificate: the `openssl` tool, run for one test.
///
/// It chooses HTTP/2 if the client offers it, but speaks HTTP/1.1 only.
/// Its certificate is for the address 127.0.0.1, not for the name `localhost`.
final class TLSOrigin: Sendable {
    static let isAvailable = access("/usr/bin/openssl", X_OK) == 0

    struct Failure: Error {
        let operation: String
        let code: Int32
    }

    let port: Int
    /// The certificate in PEM form.
    let certificate: String
    private let directory: String
    private let process: pid_t
    private let input: Int32
    private let output: Int32
    private let printed = Mutex<[UInt8]>([])

    /// - Parameter bytes: Served as `/a.gif`; nil for an origin that answers with ``send(_:)``.
    init(serving bytes: [UInt8]?) throws {
        var template = Array("/tmp/gifreel-tls-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure(operation: "mkdtemp", code: errno) }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        certificate = directory + "/certificate.pem"
        if let bytes { try Self.write(bytes, to: directory + "/a.gif") }

        let make = try Self.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=gifreel "
                + "-addext subjectAltName=IP:127.0.0.1 2>&1", in: directory)
        close(make.input)
        _ = try Self.readAll(make.output)
        waitpid(make.process, nil, 0)

        let serve = try Self.run(
            "exec openssl s_server -accept 127.0.0.1:0 -cert certificate.pem -key key.pem -alpn h2,http/1.1 "
                + "\(bytes == nil ? "" : "-WWW") 2>&1",
            in: directory)
        (process, input, output) = (serve.process, serve.input, serve.output)
        // `ACCEPT 127.0.0.1:port` is its first line.
        let line = try Self.readLine(serve.output, containing: "ACCEPT")
        guard let text = line.split(separator: ":").last, let port = Int(text) else {
            throw Failure(operation: "openssl: \(line)", code: 0)
        }
        self.port = port
        _ = fcntl(output, F_SETFL, O_NONBLOCK)
    }

    /// Whether the tool has printed `text`. It prints what it receives.
    func hasPrinted(_ text: String) -> Bool {
        printed.withLock { printed in
            var piece = [UInt8](repeating: 0, count: 4096)
            while case let count = read(output, &piece, piece.count), count > 0 { printed += piece.prefix(count) }
            return printed.firstRange(of: Array(text.utf8)) != nil
        }
    }

    /// Sends a response on the open connection.
    func send(_ body: [UInt8]) throws {
        try write(Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n\r\n".utf8) + body)
    }

    /// Changes the key of TLS 1.3, by a command of the tool. The message is none that an application reads.
    func updateKey() throws {
        try write(Array("k\n".utf8))
    }

    private func write(_ bytes: [UInt8]) throws {
        guard Glibc.write(input, bytes, bytes.count) == bytes.count else { throw Failure(operation: "write", code: errno) }
    }

    /// The bytes that clients have received on their sockets and not read.
    var unreadBytes: Int {
        // Of such files, the convenience initializers read the beginning.
        let data = try? FileHandle(forReadingFrom: URL(filePath: "/proc/net/tcp")).readToEnd()
        let table = String(decoding: data ?? Data(), as: UTF8.self)
        let suffix = ":" + String(port, radix: 16, uppercase: true)
        // The columns are a number, the local and the remote address, a state, and the queues to send and to read.
        var count = 0
        for line in table.split(separator: "\n") {
            let columns = line.split(separator: " ")
            guard columns.count > 4, columns[2].hasSuffix(suffix), let queue = columns[4].split(separator: ":").last else {
                continue
            }
            count += Int(queue, radix: 16) ?? 0
        }
        return count
    }

    func stop() {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        close(input)
        close(output)
        for name in ["a.gif", "key.pem", "certificate.pem"] { unlink(directory + "/" + name) }
        rmdir(directory)
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Failure(operation: "open", code: errno) }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw Failure(operation: "write", code: errno) }
    }

    /// Starts a shell command, with descriptors to write its input and to read its output.
    private static func run(
        _ command: String, in directory: String
    ) throws -> (process: pid_t, input: Int32, output: Int32) {
        var ends: [Int32] = [-1, -1]
        var inputs: [Int32] = [-1, -1]
        guard pipe(&ends) == 0, pipe(&inputs) == 0 else { throw Failure(operation: "pipe", code: errno) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, inputs[0], 0)
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        for end in inputs + ends { posix_spawn_file_actions_addclose(&actions, end) }
        let texts = ["sh", "-c", "cd \(directory) && \(command)"]
        let arguments: [UnsafeMutablePointer<CChar>?] = texts.map { text in strdup(text) }
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let code = posix_spawn(&process, "/bin/sh", &actions, nil, arguments + [nil], environ)
        close(inputs[0])
        close(ends[1])
        guard code == 0 else { throw Failure(operation: "posix_spawn", code: code) }
        return (process, inputs[1], ends[0])
    }

    private static func readAll(_ descriptor: Int32) throws -> [UInt8] {
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        while let byte = try readByte(descriptor) { bytes.append(byte) }
        return bytes
    }

    /// The first line with `word` in it. The descriptor stays open, so that the writer may go on.
    private static func readLine(_ descriptor: Int32, containing word: String) throws -> String {
        var line: [UInt8] = []
        while let byte = try readByte(descriptor) {
            if byte != UInt8(ascii: "\n") {
                line.append(byte)
                continue
            }
            let text = String(decoding: line, as: UTF8.self)
            if text.contains(word) { return text }
            line = []
        }
        throw Failure(operation: "openssl ended", code: 0)
    }

    private static func readByte(_ descriptor: Int32) throws -> UInt8? {
        var byte: UInt8 = 0
        let count = read(descriptor, &byte, 1)
        guard count >= 0 else { throw Failure(operation: "read", code: errno) }
        return count == 1 ? byte : nil
    }
}

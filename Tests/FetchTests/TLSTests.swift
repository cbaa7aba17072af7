import Fetch
import Glibc
import TestSupport
import Testing

@Suite("TLS certificates are verified", .enabled(if: TLSOrigin.isAvailable)) struct TLSTests {
    private func failure(_ url: String, trusting authorities: String?) async throws -> FetchError? {
        var configuration = FetchConfiguration()
        configuration.allowPrivate = [try #require(AddressException("127.0.0.1"))]
        configuration.ports = .all
        configuration.certificateAuthorities = authorities
        let fetcher = try Fetcher(configuration: configuration)
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

/// An HTTPS origin on 127.0.0.1 with a self-signed certificate: the `openssl` tool, run for one test.
///
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

    /// Serves one file, `/a.gif`.
    init(serving bytes: [UInt8]) throws {
        var template = Array("/tmp/gifreel-tls-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw Failure(operation: "mkdtemp", code: errno) }
        directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        certificate = directory + "/certificate.pem"
        try Self.write(bytes, to: directory + "/a.gif")

        let make = try Self.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=gifreel "
                + "-addext subjectAltName=IP:127.0.0.1 2>&1", in: directory)
        _ = try Self.readAll(make.output)
        waitpid(make.process, nil, 0)

        let serve = try Self.run(
            "exec openssl s_server -accept 127.0.0.1:0 -cert certificate.pem -key key.pem -WWW 2>&1", in: directory)
        process = serve.process
        // `ACCEPT 127.0.0.1:port` is its first line.
        let line = try Self.readLine(serve.output, containing: "ACCEPT")
        guard let text = line.split(separator: ":").last, let port = Int(text) else {
            throw Failure(operation: "openssl: \(line)", code: 0)
        }
        self.port = port
    }

    func stop() {
        kill(process, SIGKILL)
        waitpid(process, nil, 0)
        for name in ["a.gif", "key.pem", "certificate.pem"] { unlink(directory + "/" + name) }
        rmdir(directory)
    }

    private static func write(_ bytes: [UInt8], to path: String) throws {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw Failure(operation: "open", code: errno) }
        defer { close(file) }
        guard Glibc.write(file, bytes, bytes.count) == bytes.count else { throw Failure(operation: "write", code: errno) }
    }

    /// Starts a shell command; its output is read from the descriptor.
    private static func run(_ command: String, in directory: String) throws -> (process: pid_t, output: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw Failure(operation: "pipe", code: errno) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
        for end in ends { posix_spawn_file_actions_addclose(&actions, end) }
        let texts = ["sh", "-c", "cd \(directory) && \(command)"]
        let arguments: [UnsafeMutablePointer<CChar>?] = texts.map { text in strdup(text) }
        defer { for argument in arguments { free(argument) } }
        var process = pid_t()
        let code = posix_spawn(&process, "/bin/sh", &actions, nil, arguments + [nil], environ)
        close(ends[1])
        guard code == 0 else { throw Failure(operation: "posix_spawn", code: code) }
        return (process, ends[0])
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

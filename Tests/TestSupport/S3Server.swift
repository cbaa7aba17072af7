package import Foundation
internal import Glibc
internal import Synchronization

/// A real server with the interface of S3, on 127.0.0.1, with one bucket. `scripts/setup --tests` installs the programs.
package final class S3Server: Sendable {
    /// The programs that tests know how to start.
    package enum Kind: String, Sendable, CaseIterable {
        /// The S3 front of MinIO on a local folder, from JuiceFS.
        case juicefs
        /// The same with its default options: it drops the metadata of objects without an error.
        case juicefsWithoutMetadata
        /// Moto's imitation of Amazon's services, which does not check signatures.
        case moto
        /// rclone on a local folder.
        case rclone

        /// The kind named by `GIFREEL_TEST_S3`; ``juicefs`` if it is not set.
        package static let chosen =
            ProcessInfo.processInfo.environment["GIFREEL_TEST_S3"].flatMap(Kind.init(rawValue:)) ?? .juicefs

        fileprivate var program: String {
            switch self {
            case .juicefs, .juicefsWithoutMetadata: "juicefs"
            case .moto: "moto_server"
            case .rclone: "rclone"
            }
        }

        /// The program; nil if it is not installed.
        fileprivate var executable: URL? {
            ChildProcess.find(program)
        }

        package var isInstalled: Bool { executable != nil }
    }

    /// The error for a server that did not start.
    package struct StartFailure: Error, CustomStringConvertible {
        package let description: String
    }

    package let kind: Kind
    package let port: Int
    package let accessKey = "gifreel-test"
    package let secretKey = "secret/of+the=tests"
    package let bucket = "gifreel"
    private let folder: URL
    private let certificate: (certificate: URL, key: URL)?
    private let process = Mutex<ChildProcess?>(nil)

    /// Starts a server and waits until it answers.
    ///
    /// - Parameters:
    ///   - certificate: Files in PEM format, with which ``Kind/rclone`` serves TLS.
    package init(_ kind: Kind = .chosen, certificate: (certificate: URL, key: URL)? = nil) throws {
        self.kind = kind
        self.certificate = certificate
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-s3-\(UUID().uuidString)")
        try FileManager.default.createDirectory(
            at: folder.appendingPathComponent("data/gifreel"), withIntermediateDirectories: true)
        let metadata = "sqlite3://\(folder.path)/meta.db"
        if kind.program == "juicefs" {
            let data = folder.appendingPathComponent("blocks").path + "/"
            let format = try Self.run(
                kind, ["format", "--storage", "file", "--bucket", data, "--trash-days", "0", metadata, "gifreel"], [:])
            let outcome = try format.finish()
            guard outcome.code == 0 else { throw StartFailure(description: outcome.log) }
        }
        // The port may be taken between the choice and the start.
        var attempts = 0
        while true {
            attempts += 1
            let port = try Self.freePort()
            do {
                let started = try Self.start(kind, port: port, folder: folder, certificate, accessKey, secretKey)
                process.withLock { $0 = started }
                self.port = port
                break
            } catch  where attempts < 3 {}
        }
        if kind == .moto {
            var client = try RawHTTPClient(port: port)
            _ = try client.request("PUT", "/\(bucket)")
        }
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The address for clients.
    package var endpoint: String { "\(certificate == nil ? "http" : "https")://127.0.0.1:\(port)" }

    /// Kills the server, which keeps its data.
    package func stop() {
        guard let child = process.withLock({ $0.take() }) else { return }
        Glibc.kill(child.identifier, SIGKILL)
        _ = try? child.finish()
    }

    /// Starts the server again on the same port.
    package func restart() throws {
        let started = try Self.start(kind, port: port, folder: folder, certificate, accessKey, secretKey)
        process.withLock { $0 = started }
    }

    // MARK: The program

    private static func start(
        _ kind: Kind, port: Int, folder: URL, _ certificate: (certificate: URL, key: URL)?, _ accessKey: String,
        _ secretKey: String
    ) throws -> ChildProcess {
        let address = "127.0.0.1:\(port)"
        let child =
            switch kind {
            case .juicefs, .juicefsWithoutMetadata:
                try run(
                    kind,
                    [
                        "gateway", "--no-agent", "--no-banner", "--no-usage-report", "--no-bgjob", "--metrics", "127.0.0.1:0",
                        "--cache-dir", folder.appendingPathComponent("cache").path, "--cache-size", "64", "--buffer-size",
                        "64M",
                    ] + (kind == .juicefs ? ["--object-meta"] : []) + ["sqlite3://\(folder.path)/meta.db", address],
                    ["MINIO_ROOT_USER": accessKey, "MINIO_ROOT_PASSWORD": secretKey])
            case .moto: try run(kind, ["-H", "127.0.0.1", "-p", "\(port)"], [:])
            case .rclone:
                try run(
                    kind,
                    [
                        "serve", "s3", "--config", "/dev/null", "--addr", address, "--auth-key", "\(accessKey),\(secretKey)",
                    ] + (certificate.map { ["--cert", $0.certificate.path, "--key", $0.key.path] } ?? [])
                        + [folder.appendingPathComponent("data").path], [:])
            }
        do {
            try blockUntil("\(kind) to accept connections") {
                guard child.isRunning else { throw StartFailure(description: "\(kind) ended: \(child.log)") }
                // A server over TLS does not answer plain text.
                guard certificate == nil else { return (try? RawHTTPClient(port: port)) != nil }
                guard var client = try? RawHTTPClient(port: port, timeout: 5) else { return false }
                return (try? client.request("HEAD", "/")) != nil
            }
        } catch {
            Glibc.kill(child.identifier, SIGKILL)
            _ = try? child.finish()
            throw error
        }
        return child
    }

    private static func run(_ kind: Kind, _ arguments: [String], _ variables: [String: String]) throws -> ChildProcess {
        guard let executable = kind.executable else {
            throw StartFailure(description: "\(kind.program) is not installed: run scripts/setup --tests")
        }
        let environment = ProcessInfo.processInfo.environment.merging(variables) { _, new in new }
        return try ChildProcess(executable, arguments, environment: environment)
    }

    private static func freePort() throws -> Int {
        let (number, port) = try LoopbackSocket.listen()
        close(number)
        return port
    }
}

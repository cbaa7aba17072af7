internal import Foundation
internal import Glibc
internal import Synchronization

/// A real nginx that serves one file on a port of 127.0.0.1.
package final class NginxServer: Sendable {
    package static let isAvailable = executable != nil

    private static let executable = ChildProcess.find("nginx")

    /// The error for a server that is not installed or ended at its start.
    package struct StartFailure: Error, CustomStringConvertible {
        package let description: String
    }

    package let port: Int
    /// The path of the file in a request.
    package let path = "/file.mp4"
    private let folder: URL
    private let process = Mutex<ChildProcess?>(nil)

    /// Starts a server and waits until it listens. The caller must call ``stop()``.
    ///
    /// - Parameter body: The bytes of the file.
    package init(serving body: [UInt8]) async throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-nginx-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try Data(body).write(to: folder.appendingPathComponent(path))
        // The port may be taken between the choice and the start.
        var attempts = 0
        while true {
            attempts += 1
            let (socket, port) = try LoopbackSocket.listen()
            close(socket)
            do {
                let started = try await Self.start(port: port, folder: folder)
                process.withLock { $0 = started }
                self.port = port
                break
            } catch  where error is StartFailure && attempts < 3 {}
        }
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Kills the server.
    package func stop() {
        guard let child = process.withLock({ $0.take() }) else { return }
        kill(child.identifier, SIGKILL)
        _ = try? child.finish()
    }

    private static func start(port: Int, folder: URL) async throws -> ChildProcess {
        guard let executable else { throw StartFailure(description: "nginx is not installed") }
        let (configuration, identifier) = (folder.path + "/nginx.conf", folder.path + "/pid")
        try Data(text(port: port, folder: folder.path, identifier: identifier).utf8).write(to: URL(filePath: configuration))
        let child = try ChildProcess(executable, ["-e", "stderr", "-c", configuration])
        // nginx writes the file when it listens. Another program may answer at the port.
        try await waitUntil("nginx listens: \(child.log)") {
            guard child.isRunning else { throw StartFailure(description: "nginx ended: \(child.log)") }
            return FileManager.default.fileExists(atPath: identifier)
        }
        return child
    }

    /// One process, so that nothing of nginx outlives a kill, and no file outside of the folder.
    private static func text(port: Int, folder: String, identifier: String) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(folder)/\($0);" }
        return """
            daemon off; master_process off; pid \(identifier); error_log stderr warn;
            events { worker_connections 512; }
            http {
                types { video/mp4 mp4; }
                access_log off; sendfile on; tcp_nopush on;
                \(temporary.joined(separator: " "))
                server { listen 127.0.0.1:\(port); root \(folder); }
            }
            """
    }
}

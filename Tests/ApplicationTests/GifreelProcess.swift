import Foundation
import Glibc
import TestSupport

/// The built `gifreel` as a process of its own, with a cache directory of its own.
final class GifreelProcess: Sendable {
    struct NotStarted: Error {
        let log: String
    }

    /// Where `gifreel` was built: beside the tests.
    static let executable: URL = {
        let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        return bundle.appendingPathComponent("gifreel")
    }()

    let directory: URL
    let port: Int
    private let process: Process

    /// Starts a server that may fetch from loopback, and waits until it listens.
    ///
    /// - Parameters:
    ///   - settings: `name=value`, over those that every test has.
    ///   - configuration: A settings file.
    ///   - directory: Of an earlier server, to start again on its cache.
    ///   - environment: Variables besides the test's own.
    ///   - standardError: A file in the directory by default, which ``log`` reads.
    init(
        _ settings: [String] = [], configuration: String? = nil, directory: URL? = nil, environment: [String: String] = [:],
        standardOutput: FileHandle = .nullDevice, standardError: FileHandle? = nil
    ) throws {
        let folder = directory ?? FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let portFile = folder.appendingPathComponent("port")
        try? FileManager.default.removeItem(at: portFile)
        let log = folder.appendingPathComponent("log")
        FileManager.default.createFile(atPath: log.path, contents: nil)
        let all =
            [
                "server.port=0", "server.port_file=\(portFile.path)", "cache.dir=\(folder.path)/cache",
                "cache.min_free_bytes=0",
                "sources.allow_private=127.0.0.1", "sources.ports=1-65535", "transcode.workers=2",
            ] + settings
        let process = Process()
        process.executableURL = Self.executable
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.arguments = ["serve"] + (configuration.map { ["--config", $0] } ?? []) + all.flatMap { ["--set", $0] }
        process.standardError = try standardError ?? FileHandle(forWritingTo: log)
        process.standardOutput = standardOutput
        try process.run()
        var found: Int?
        let deadline = Date().addingTimeInterval(30)
        while found == nil && process.isRunning && Date() < deadline {
            found = (try? String(contentsOf: portFile, encoding: .utf8)).flatMap {
                Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            if found == nil { usleep(5000) }
        }
        guard let found else {
            process.terminate()
            throw NotStarted(log: (try? String(contentsOf: log, encoding: .utf8)) ?? "")
        }
        self.directory = folder
        self.process = process
        port = found
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: directory)
    }

    /// One request on a connection of its own.
    func request(
        _ method: String = "GET", _ target: String, headers: [String] = [], body: [UInt8] = []
    ) throws -> RawHTTPResponse {
        var client = try RawHTTPClient(port: port)
        return try client.request(method, target, headers: headers, body: body)
    }

    /// The MP4 of a source, asked for by its path.
    func mp4(_ url: String, headers: [String] = []) throws -> RawHTTPResponse {
        try request("GET", "/mp4/\(url)", headers: headers)
    }

    /// The process' number.
    var identifier: Int32 { process.processIdentifier }

    /// How many workers it has at this moment that have a job: children of its zygote.
    var workerCount: Int { workers.count }

    /// The processes of these workers.
    var workers: [Int32] {
        Self.children(of: identifier).flatMap(Self.children).filter { child in
            (try? String(contentsOfFile: "/proc/\(child)/comm", encoding: .utf8)) == "gifreel-job\n"
        }
    }

    /// The zygotes.
    var zygotes: [Int32] { Self.children(of: identifier) }

    private static func children(of process: Int32) -> [Int32] {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return threads.flatMap { thread in
            let text = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/children", encoding: .utf8)
            return (text ?? "").split(separator: " ").compactMap { Int32($0) }
        }
    }

    var isRunning: Bool { process.isRunning }

    /// What it has written to standard error.
    var log: String { (try? String(contentsOf: directory.appendingPathComponent("log"), encoding: .utf8)) ?? "" }

    /// Sends SIGTERM, waits for the end, and returns the exit code.
    func terminate() -> Int32 {
        process.terminate()
        return waitForExit()
    }

    /// Waits for the end, and returns the exit code.
    func waitForExit() -> Int32 {
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Ends it at once.
    func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Paths of the stored renditions.
    func storedObjects() -> [String] {
        let all = FileManager.default.enumerator(atPath: directory.path + "/cache")?.allObjects as? [String] ?? []
        return all.filter { $0.hasSuffix(".mp4") }
    }
}

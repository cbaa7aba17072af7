package import Foundation
internal import Glibc

/// The built `gifreel` as a server in its own process, with its own cache directory.
package final class GifreelProcess: Sendable {
    /// The error for a server that ended, or did not listen within 30 seconds.
    package struct NotStarted: Error {
        package let log: String
    }

    /// The executable that was built beside the tests.
    package static let executable: URL = {
        let bundle = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        return bundle.appendingPathComponent("gifreel")
    }()

    package let directory: URL
    package let port: Int
    private let process: Process

    /// Starts a server that may fetch from loopback, and waits until it listens.
    ///
    /// - Parameters:
    ///   - settings: `name=value`, in addition to the settings that every test has.
    ///   - configuration: The path of a settings file.
    ///   - directory: The directory of an earlier server whose cache the new one uses.
    ///   - environment: Variables in addition to those of the test.
    ///   - standardError: A file in the directory by default, which ``log`` reads.
    package init(
        _ settings: [String] = [], configuration: String? = nil, directory: URL? = nil, environment: [String: String] = [:],
        standardOutput: FileHandle = .nullDevice, standardError: FileHandle? = nil
    ) throws {
        let folder = directory ?? FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let portFile = folder.appendingPathComponent("port")
        try? FileManager.default.removeItem(at: portFile)
        let log = folder.appendingPathComponent("log")
        try Data().write(to: log)
        let all =
            [
                "server.port=0", "server.port_file=\(portFile.path)", "cache.dir=\(folder.path)/cache",
                "cache.min_free_bytes=0", "sources.allow_private=127.0.0.1", "sources.ports=1-65535", "transcode.workers=2",
            ] + settings
        let process = Process()
        process.executableURL = Self.executable
        // A server refuses variables of its own prefix that set no setting, such as those of the tests.
        let inherited = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("GIFREEL_TEST_") }
        // No test asks an address outside of this machine for keys.
        process.environment = inherited.merging(["AWS_EC2_METADATA_DISABLED": "true"]) { $1 }.merging(environment) { $1 }
        process.arguments = ["serve"] + (configuration.map { ["--config", $0] } ?? []) + all.flatMap { ["--set", $0] }
        let logHandle = try FileHandle(forWritingTo: log)
        // Foundation keeps it open after the end of the process.
        defer { try? logHandle.close() }
        process.standardError = standardError ?? logHandle
        process.standardOutput = standardOutput
        try process.start()
        var found: Int?
        try? blockUntil("the port file", within: .seconds(30)) {
            found = (try? String(contentsOf: portFile, encoding: .utf8)).flatMap {
                Int($0.trimmingCharacters(in: .whitespacesAndNewlines))
            }
            return found != nil || !process.isRunning
        }
        guard let found else {
            process.terminate()
            defer { if directory == nil { try? FileManager.default.removeItem(at: folder) } }
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

    // MARK: Requests

    /// Sends one request on a new connection.
    package func request(
        _ method: String = "GET", _ target: String, headers: [String] = [], body: [UInt8] = []
    ) throws -> RawHTTPResponse {
        var client = try RawHTTPClient(port: port)
        return try client.request(method, target, headers: headers, body: body)
    }

    /// Requests the MP4 of a source by its path.
    package func mp4(_ url: String, headers: [String] = []) throws -> RawHTTPResponse {
        try request("GET", "/mp4/\(url)", headers: headers)
    }

    // MARK: Observing

    package var identifier: Int32 { process.processIdentifier }
    package var isRunning: Bool { process.isRunning }

    /// The number of workers that run a job now.
    package var workerCount: Int { workers.count }

    /// The processes of workers that run a job: children of the zygote.
    package var workers: [Int32] { Self.workers(of: identifier) }

    /// The processes of workers that run a job of this process.
    package static func workers(of process: Int32) -> [Int32] {
        children(of: process).flatMap(children).filter { child in
            (try? String(contentsOfFile: "/proc/\(child)/comm", encoding: .utf8)) == "gifreel-job\n"
        }
    }

    /// The zygotes.
    package var zygotes: [Int32] { Self.children(of: identifier) }

    private static func children(of process: Int32) -> [Int32] {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return threads.flatMap { thread in
            let text = try? String(contentsOfFile: "/proc/\(process)/task/\(thread)/children", encoding: .utf8)
            return (text ?? "").split(separator: " ").compactMap { Int32($0) }
        }
    }

    /// A value of `/proc/PID/status` in bytes, such as `VmHWM`, the peak of resident memory.
    package func memory(_ name: String) throws -> Int { try Self.memory(name, of: identifier) }

    /// Such a value of any process.
    package static func memory(_ name: String, of process: Int32) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(name + ":") }),
            let kilobytes = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap({ Int($0) })
        else { throw NoSuchLine(name: name) }
        return kilobytes * 1024
    }

    /// The error for a value that `/proc` does not have.
    package struct NoSuchLine: Error {
        package let name: String
    }

    /// The server's standard error so far.
    package var log: String { (try? String(contentsOf: directory.appendingPathComponent("log"), encoding: .utf8)) ?? "" }

    /// Waits until the log contains `text`.
    @available(*, noasync)
    package func waitForLog(_ text: String, file: String = #fileID, line: Int = #line) throws {
        try blockUntil("“\(text)” in the log:\n\(log)", file: file, line: line) { log.contains(text) }
    }

    /// Paths of the stored MP4 renditions.
    package func storedObjects() -> [String] {
        let all = FileManager.default.enumerator(atPath: directory.path + "/cache")?.allObjects as? [String] ?? []
        return all.filter { $0.hasSuffix(".mp4") }
    }

    // MARK: Ending

    /// Sends SIGTERM, waits for the end, and returns the exit code.
    package func terminate() -> Int32 {
        process.terminate()
        return waitForExit()
    }

    /// Waits for the end, and returns the exit code: 9 for a server that does not end within a minute and is killed.
    @available(*, noasync)
    package func waitForExit() -> Int32 {
        process.waitForEnd(within: .seconds(60))
    }

    /// Kills the server.
    package func kill() {
        guard process.isRunning else { return }
        Glibc.kill(process.processIdentifier, SIGKILL)
        _ = process.waitForEnd(within: .seconds(60))
    }
}

/// Runs of the built `gifreel` to their end.
package enum GifreelCommandLine {
    /// Runs `gifreel` with these arguments.
    ///
    /// - Parameters:
    ///   - environment: Variables in addition to those of the test.
    ///   - input: Standard input.
    package static func run(
        _ arguments: [String], environment: [String: String] = [:], input: [UInt8] = []
    ) throws -> ChildProcess.Outcome {
        try ChildProcess(
            GifreelProcess.executable, arguments, environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
            input: input
        ).finish()
    }
}

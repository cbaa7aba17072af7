package import Foundation
internal import Glibc
internal import Synchronization

/// A program that runs beside a test. Its output goes to files, so that it never blocks on a full pipe.
package final class ChildProcess: Sendable {
    /// The result of a run.
    package struct Outcome: Sendable {
        /// The exit code, or the signal's number if a signal ended the program.
        package let code: Int32
        /// Standard output.
        package let bytes: [UInt8]
        /// Standard error.
        package let log: String

        /// Standard output as text, without the newlines at its end.
        package var output: String { String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines) }
    }

    private let process: Process
    private let folder: URL

    /// The path of a program in `.tools` of the project, in `PATH` or in the directories of system programs; nil if it is not installed.
    package static func find(_ program: String) -> URL? {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        let folders = [root.path + "/.tools/bin"] + path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"]
        return folders.map { URL(filePath: $0 + "/" + program) }.first { FileManager.default.isExecutableFile(atPath: $0.path) }
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - environment: All its variables; nil for those of the test.
    ///   - input: Its standard input.
    package init(
        _ executable: URL, _ arguments: [String], environment: [String: String]? = nil, input: [UInt8] = []
    ) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-run-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, bytes) in [("input", input), ("output", []), ("log", [])] {
            try Data(bytes).write(to: folder.appendingPathComponent(name))
        }
        process = Process()
        process.executableURL = executable
        process.arguments = arguments
        if let environment { process.environment = environment }
        let input = try FileHandle(forReadingFrom: folder.appendingPathComponent("input"))
        let output = try FileHandle(forWritingTo: folder.appendingPathComponent("output"))
        let log = try FileHandle(forWritingTo: folder.appendingPathComponent("log"))
        // Foundation keeps them open after the end of the process. With some 1,350 open descriptors, `run()` can read past the end of a
        // list of them and crash (swift-corelibs-foundation, pull request 5472).
        defer { for handle in [input, output, log] { try? handle.close() } }
        process.standardInput = input
        process.standardOutput = output
        process.standardError = log
        try process.start()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: folder)
    }

    package var identifier: Int32 { process.processIdentifier }
    package var isRunning: Bool { process.isRunning }

    /// The program's standard error so far.
    package var log: String {
        (try? Data(contentsOf: folder.appendingPathComponent("log"))).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Waits for the program's end. A program that runs for more than two minutes is killed: its code is 9.
    @available(*, noasync)
    package func finish() throws -> Outcome {
        let code = process.waitForEnd(within: .seconds(120))
        return Outcome(
            code: code, bytes: [UInt8](try Data(contentsOf: folder.appendingPathComponent("output"))), log: log)
    }
}

extension Process {
    private static let starting = Mutex(())

    /// Starts the process, while no other one is started by a test. A process inherits the sockets by which Foundation learns of the end
    /// of those that are started at the same moment; they would seem to run until it ends.
    package func start() throws {
        try Self.starting.withLock { _ in try run() }
    }

    /// Waits for the end of the process and returns the exit code or the signal's number. Kills a process that does not end in
    /// time.
    @available(*, noasync)
    package func waitForEnd(within limit: Duration) -> Int32 {
        let name = executableURL?.lastPathComponent ?? "a process"
        func hasEnded(within limit: Duration) -> Bool {
            (try? blockUntil("the end of \(name)", within: limit) { !isRunning }) != nil
        }
        if hasEnded(within: limit) { return terminationStatus }
        kill(processIdentifier, SIGKILL)
        return hasEnded(within: .seconds(60)) ? terminationStatus : SIGKILL
    }
}

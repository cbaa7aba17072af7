import Foundation

/// One run of the built `gifreel` to its end.
enum GifreelCommandLine {
    struct Outcome {
        var code: Int32
        /// Standard output less the newline at its end.
        var output: String
        /// Standard error.
        var log: String
    }

    static func run(_ arguments: [String], environment: [String: String] = [:]) throws -> Outcome {
        let process = Process()
        process.executableURL = GifreelProcess.executable
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, log) = (Pipe(), Pipe())
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = log
        try process.run()
        let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
        let text = try log.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return Outcome(
            code: process.terminationStatus,
            output: String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines),
            log: String(decoding: text, as: UTF8.self))
    }
}

internal import Foundation

/// Runs of the built `gifreel` to their end.
package enum GifreelCommandLine {
    /// Runs `gifreel` with these arguments.
    ///
    /// - Parameters:
    ///   - environment: Variables besides the test's own.
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

internal import ArgumentParser
internal import Foundation
internal import Settings
internal import SystemIO
internal import Web

/// The arguments of the commands that read the settings as the server does.
struct SettingsArguments: ParsableArguments {
    @Option(
        name: .customLong("config"), help: "A YAML file with settings.", completion: .file(extensions: ["yaml", "yml"]))
    var file: String?

    @Option(name: .customLong("set"), help: "Sets a setting, such as --set server.port=0. Can be repeated.")
    var values: [String] = []

    /// Reads flags, environment and file. Blocks while files are read.
    func read() throws(SettingsError) -> SettingsReader.Result {
        try SettingsReader.read(file: file, environment: ProcessInfo.processInfo.environment, flags: values)
    }
}

extension SettingsError {
    /// The problem of the request that the arguments describe.
    init(_ problem: Problem) { self.init(problem.detail) }
    /// The error of a worker process that cannot be started.
    static func noWorker(_ error: SystemError) -> SettingsError {
        SettingsError("The worker process cannot be started: \(error).")
    }
}

internal import ArgumentParser

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Runs the HTTP server until SIGTERM or SIGINT.",
        discussion:
            "gifreel settings prints every setting. Each is also an environment variable, such as GIFREEL_SERVER_PORT; see gifreel.yaml(5)."
    )

    @Option(name: .customLong("config"), help: "A YAML file with settings.")
    var file: String?

    @Option(name: .customLong("set"), help: "Sets a setting, such as --set server.port=0. Can be repeated.")
    var settings: [String] = []

    @Flag(name: .customLong("check"), help: "Checks the settings, prints those in force, and exits.")
    var checks = false

    func run() throws {
        let code = Serve(file: file, flags: settings, checksOnly: checks).run()
        if code != 0 { throw ExitCode(code) }
    }
}

internal import ArgumentParser

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serves MP4s of GIFs over HTTP until SIGTERM.",
        discussion:
            "Each setting of config/gifreel.yaml can also be given by --set or as a variable such as GIFREEL_SERVER_PORT.")

    @Option(name: .customLong("config"), help: "The configuration file, in YAML.")
    var file: String?

    @Option(name: .customLong("set"), help: "A setting, as in --set server.port=0; may be repeated.")
    var settings: [String] = []

    @Flag(name: .customLong("check"), help: "Check the settings, print those in force, and end.")
    var checks = false

    func run() throws {
        let code = Serve(file: file, flags: settings, checksOnly: checks).run()
        if code != 0 { throw ExitCode(code) }
    }
}

internal import ArgumentParser

struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Prints a signed path for a source.",
        usage: "gifreel sign URL [NAME=VALUE …] [--format mp4] [--expires 1h]\n       gifreel sign --upload [NAME=VALUE …]",
        discussion: "The key is the first of signing.keys, best given as GIFREEL_SIGNING_KEYS.")

    @Option(name: .customLong("config"), help: "The configuration file, in YAML.")
    var file: String?

    @Option(name: .customLong("set"), help: "A setting, as in --set signing.keys=…; may be repeated.")
    var settings: [String] = []

    @Option(help: "What is to be made of the source.")
    var format = "mp4"

    @Option(help: "Until when it may be asked: a time from now (90s, 1h, 7d) or unix seconds. Default: always.")
    var expires: String?

    @Flag(help: "Sign an upload (POST), which has no URL.")
    var upload = false

    @Argument(help: "The source's URL, and options such as quality=80.")
    var words: [String] = []

    func validate() throws {
        if !upload && words.isEmpty { throw ValidationError("Give the URL of a source, or --upload.") }
    }

    func run() throws {
        let code = Sign(
            file: file, flags: settings, format: format, source: upload ? nil : words[0],
            options: upload ? words : Array(words.dropFirst()), expires: expires
        ).run()
        if code != 0 { throw ExitCode(code) }
    }
}

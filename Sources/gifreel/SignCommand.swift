internal import ArgumentParser

struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Prints a signed path for a source.",
        usage: "gifreel sign URL [NAME=VALUE …] [--format mp4] [--expires 1h]\n       gifreel sign --upload [NAME=VALUE …]",
        discussion: "Signs with the first of signing.keys, which is best set by GIFREEL_SIGNING_KEYS.")

    @Option(name: .customLong("config"), help: "A YAML file with settings.")
    var file: String?

    @Option(name: .customLong("set"), help: "Sets a setting, such as --set signing.keys=…. Can be repeated.")
    var settings: [String] = []

    @Option(help: "The format of the rendition.")
    var format = "mp4"

    @Option(help: "When the signature expires: a time from now (90s, 1h, 7d) or Unix seconds. Default: never.")
    var expires: String?

    @Flag(help: "Signs an upload (POST), which has no URL.")
    var upload = false

    @Argument(help: "The URL of the source, and options such as quality=80.")
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

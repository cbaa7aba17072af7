internal import ArgumentParser
internal import Foundation

struct PurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Removes renditions from the cache of a running server.",
        usage: "gifreel purge URL…\n       gifreel purge --prefix https://example.com/2024/\n       gifreel purge --all")

    @Argument(help: "URLs of the sources whose renditions are removed.")
    var urls: [String] = []

    @Option(help: "Removes the renditions of all sources whose URL begins with this. Can be repeated.")
    var prefix: [String] = []

    @Flag(help: "Removes all renditions.")
    var all = false

    @Option(help: "The URL of the server.")
    var server = "http://127.0.0.1:8080"

    @Option(help: "The admin token. Prefer GIFREEL_ADMIN_TOKEN: other users of the machine can see command lines.")
    var token: String?

    func validate() throws {
        if urls.isEmpty && prefix.isEmpty && !all { throw ValidationError("Give URLs, --prefix or --all.") }
        if all && !(urls.isEmpty && prefix.isEmpty) { throw ValidationError("--all cannot be combined with URLs or --prefix.") }
        if prefix.contains("") { throw ValidationError("An empty --prefix matches everything; use --all instead.") }
    }

    func run() throws {
        let token = token ?? ProcessInfo.processInfo.environment["GIFREEL_ADMIN_TOKEN"]
        let code = Purge(urls: urls, prefixes: prefix, all: all, server: server, token: token).run()
        if code != 0 { throw ExitCode(code) }
    }
}

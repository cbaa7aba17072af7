internal import ArgumentParser
internal import Foundation

struct PurgeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "purge",
        abstract: "Has a running server forget sources.",
        usage: "gifreel purge URL…\n       gifreel purge --prefix https://example.com/2024/\n       gifreel purge --all")

    @Argument(help: "Sources whose renditions are forgotten.")
    var urls: [String] = []

    @Option(help: "Forget all sources whose URL begins so; may be repeated.")
    var prefix: [String] = []

    @Flag(help: "Forget everything.")
    var all = false

    @Option(help: "The server.")
    var server = "http://127.0.0.1:8080"

    @Option(help: "The admin token; better given by the variable GIFREEL_ADMIN_TOKEN, since others see command lines.")
    var token: String?

    func validate() throws {
        if urls.isEmpty && prefix.isEmpty && !all { throw ValidationError("Say what to forget: URLs, --prefix or --all.") }
        if all && !(urls.isEmpty && prefix.isEmpty) { throw ValidationError("--all goes with neither URLs nor --prefix.") }
        if prefix.contains("") { throw ValidationError("An empty prefix would be everything: say --all.") }
    }

    func run() throws {
        let token = token ?? ProcessInfo.processInfo.environment["GIFREEL_ADMIN_TOKEN"]
        let code = Purge(urls: urls, prefixes: prefix, all: all, server: server, token: token).run()
        if code != 0 { throw ExitCode(code) }
    }
}

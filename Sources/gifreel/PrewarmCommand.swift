internal import ArgumentParser
internal import Foundation
internal import Prewarm
internal import Renditions

struct PrewarmCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prewarm",
        abstract: "Has renditions made before anybody asks for them.",
        discussion: """
            Lists are plain lines, NDJSON as POST /prewarm takes it, a sitemap, or an HTML page. With --server a running \
            server does the work, behind what its visitors ask for; without, it is done here, straight on the cache \
            directory of the settings, which no server may be using.

            A run that was interrupted goes on where it stopped when it is started again with the same lists.

            Exit status: 0 when all is in the cache, 1 when something failed, 2 when the command makes no sense, 130 when \
            interrupted.
            """)

    @Argument(help: "Files with lists; - is standard input.")
    var files: [String] = ["-"]

    @Option(help: ArgumentHelp("The server, such as http://127.0.0.1:8080.", valueName: "url"))
    var server: String?

    @Option(help: "The server's admin token; better given by GIFREEL_ADMIN_TOKEN.")
    var token: String?

    @Option(name: .customLong("config"), help: "Without a server: the configuration file, in YAML.")
    var configurationFile: String?

    @Option(name: .customLong("set"), help: "Without a server: a setting, as in --set cache.dir=var/cache; may be repeated.")
    var settings: [String] = []

    @Option(
        help:
            "How the lists are written: \(PrewarmList.Format.allCases.map(\.rawValue).joined(separator: ", ")); default: what they look like."
    )
    var list: String?

    @Option(help: ArgumentHelp("The page's own URL, for links in HTML that are not absolute.", valueName: "url"))
    var base: String?

    @Option(help: "A format to make where a list does not say; may be repeated; default mp4.")
    var format: [String] = []

    @Option(
        help: ArgumentHelp(
            "An option where a list does not say, as in --option width=480; may be repeated.", valueName: "name=value"))
    var option: [String] = []

    @Option(help: "Renditions at once; default: processors.")
    var concurrency: Int = ProcessInfo.processInfo.activeProcessorCount

    @Option(help: "Attempts after the first, where an origin fails.")
    var retries: Int = 2

    @Flag(help: "Only say what would be made.")
    var dryRun = false

    @Option(help: "What is done so far is kept here; default: a file of the list's own below ~/.local/state/gifreel.")
    var journal: String?

    @Option(help: "Write all outcomes to this file: JSON, or CSV where it ends in .csv.")
    var report: String?

    func validate() throws {
        if let list, PrewarmList.Format(rawValue: list) == nil { throw ValidationError("There is no list format \(list).") }
        if !(1...1024).contains(concurrency) { throw ValidationError("--concurrency must be from 1 to 1024.") }
        if !(0...20).contains(retries) { throw ValidationError("--retries must be from 0 to 20.") }
        for format in format where Rendition.Format(rawValue: format) == nil {
            throw ValidationError("There is no format \(format).")
        }
        for pair in option where !pair.contains("=") {
            throw ValidationError("--option \(pair) is not of the form name=value.")
        }
        if let server, !server.hasPrefix("http://"), !server.hasPrefix("https://") {
            throw ValidationError("--server must be an http or https URL.")
        }
        if server != nil && (configurationFile != nil || !settings.isEmpty) {
            throw ValidationError("--config and --set are for work without a server.")
        }
    }

    func run() throws {
        let options = option.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init) }
        let code = Prewarm(
            files: files, listFormat: list.flatMap { PrewarmList.Format(rawValue: $0) }, base: base,
            formats: format.isEmpty ? ["mp4"] : format,
            options: Dictionary(options.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 }), server: server,
            token: token ?? ProcessInfo.processInfo.environment["GIFREEL_ADMIN_TOKEN"],
            configurationFile: configurationFile, flags: settings, concurrency: concurrency, retries: retries,
            isDryRun: dryRun, journal: journal, report: report
        ).run()
        if code != 0 { throw ExitCode(code) }
    }
}

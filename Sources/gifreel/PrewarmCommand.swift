internal import ArgumentParser
internal import Foundation
internal import Prewarm
internal import Renditions

struct PrewarmCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prewarm",
        abstract: "Fills the cache with renditions before they are requested.",
        discussion: """
            A list consists of plain lines, NDJSON as for POST /prewarm, a sitemap, or an HTML page. With --server, a running \
            server makes the renditions at lower priority than requests. Without it, this command makes them in the cache \
            directory of the settings, which no server may be using.

            After an interruption, the same command continues where it stopped.

            Exit status: 0 if all renditions are in the cache, 1 if some failed, 2 for wrong arguments or lists, 130 after \
            an interruption.
            """)

    @Argument(help: "Files with lists; - is standard input.")
    var files: [String] = ["-"]

    @Option(help: ArgumentHelp("The URL of the server, such as http://127.0.0.1:8080.", valueName: "url"))
    var server: String?

    @Option(
        help: "The admin token of the server. Prefer GIFREEL_ADMIN_TOKEN: other users of the machine can see command lines.")
    var token: String?

    @Option(name: .customLong("config"), help: "Without --server: a YAML file with settings.")
    var configurationFile: String?

    @Option(
        name: .customLong("set"), help: "Without --server: sets a setting, such as --set cache.dir=var/cache. Can be repeated.")
    var settings: [String] = []

    @Option(
        help:
            "The form of the lists: \(PrewarmList.Format.allCases.map(\.rawValue).joined(separator: ", ")). Default: detected from the content."
    )
    var list: String?

    @Option(help: ArgumentHelp("The URL of an HTML page, to resolve its relative links.", valueName: "url"))
    var base: String?

    @Option(help: "The format of entries that name none. Can be repeated. Default: mp4.")
    var format: [String] = []

    @Option(
        help: ArgumentHelp(
            "An option of entries that do not set it, such as --option width=480. Can be repeated.", valueName: "name=value"))
    var option: [String] = []

    @Option(help: "Renditions to make at the same time. Default: one per processor.")
    var concurrency: Int = ProcessInfo.processInfo.activeProcessorCount

    @Option(help: "Further attempts after an origin has failed.")
    var retries: Int = 2

    @Flag(help: "Prints the renditions without making them.")
    var dryRun = false

    @Option(help: "The file that records progress. Default: a file per list below ~/.local/state/gifreel.")
    var journal: String?

    @Option(help: "Writes all outcomes to this file, as CSV if its name ends in .csv, otherwise as JSON.")
    var report: String?

    func validate() throws {
        if let list, PrewarmList.Format(rawValue: list) == nil {
            throw ValidationError("There is no list format \(list); see --help.")
        }
        if !(1...1024).contains(concurrency) { throw ValidationError("--concurrency must be from 1 to 1024.") }
        if !(0...20).contains(retries) { throw ValidationError("--retries must be from 0 to 20.") }
        for format in format where Rendition.Format(rawValue: format) == nil {
            throw ValidationError("There is no format \(format); see --help.")
        }
        for pair in option where !pair.contains("=") {
            throw ValidationError("--option \(pair) is not of the form name=value.")
        }
        if let server, !server.hasPrefix("http://"), !server.hasPrefix("https://") {
            throw ValidationError("--server must be an http or https URL.")
        }
        if server != nil && (configurationFile != nil || !settings.isEmpty) {
            throw ValidationError("--config and --set cannot be combined with --server.")
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

internal import ArgumentParser
internal import Fetch
internal import Fleet
internal import Foundation
internal import Glibc
internal import Logging
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Settings
internal import Store
internal import SystemIO
internal import Telemetry
internal import Web

/// `gifreel prewarm`: produces the renditions of lists of sources, in a cache directory or by a running server.
struct PrewarmCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "prewarm",
        abstract: "Fills the cache with renditions before they are requested.",
        discussion: """
            A list consists of plain lines, NDJSON as for POST /prewarm, a sitemap, or an HTML page. With --server, a running \
            server makes the renditions at lower priority than requests. Without it, this command makes them in the cache \
            directory of the settings, which no server may be using. --list-jobs shows what a server has accepted.

            After an interruption, the same command continues where it stopped.

            Exit status: 0 if all renditions were found or made, 1 if some failed or a sitemap of an index cannot be read, 64 \
            for wrong arguments or lists, 130 after an interruption. A sentence says so if the cache evicted renditions meanwhile.
            """)

    @Argument(help: "Files with lists; - is standard input.", completion: .file())
    var files: [String] = ["-"]

    @Option(help: ArgumentHelp("The URL of the server, such as http://127.0.0.1:8080.", valueName: "url"))
    var server: String?

    @Flag(
        help: ArgumentHelp(
            "Lists the jobs of the server, newest first. Default of --server: \(AdminServer.address)."))
    var listJobs = false

    @Option(
        help: "The admin token of the server. Prefer GIFREEL_ADMIN_TOKEN: other users of the machine can see command lines.")
    var token: String?

    @OptionGroup(title: "Without --server") var settings: SettingsArguments

    @Option(help: "The form of the lists. Default: detected from the content.")
    var list: PrewarmList.Format?

    @Option(help: ArgumentHelp("The URL of an HTML page, to resolve its relative links.", valueName: "url"))
    var base: String?

    @Option(
        help: ArgumentHelp(
            "The format of entries that name none: \(Self.formatNames). Can be repeated. Default: mp4.", valueName: "format"))
    var format: [String] = []

    @Option(
        help: ArgumentHelp(
            "An option of entries that do not set it, such as --option width=480. Can be repeated.", valueName: "name=value"))
    var option: [String] = []

    @Option(help: "Renditions to make at the same time. Default: one per processor.")
    var concurrency: Int?

    @Option(help: "Further attempts after an origin has failed.")
    var retries: Int = 2

    @Flag(help: "Prints the renditions without making them.")
    var dryRun = false

    @Option(
        help: "The file that records progress. Default: a file per list below ~/.local/state/gifreel.", completion: .file())
    var journal: String?

    @Option(
        help: "Writes all outcomes to this file, as CSV if its name ends in .csv, otherwise as JSON.", completion: .file())
    var report: String?

    private static let formatNames = Rendition.Format.offered.filter { $0.output != nil }.map(\.rawValue).joined(
        separator: ", ")

    func validate() throws {
        if let concurrency, !(1...1024).contains(concurrency) { throw ValidationError("--concurrency must be from 1 to 1024.") }
        if !(0...20).contains(retries) { throw ValidationError("--retries must be from 0 to 20.") }
        for name in format {
            guard let format = Rendition.Format(rawValue: name) else {
                throw ValidationError("There is no format “\(name)”; give one of \(Self.formatNames).")
            }
            if format.output == nil {
                throw ValidationError("The format “\(name)” needs no conversion; give one of \(Self.formatNames).")
            }
        }
        for pair in option where !pair.dropFirst().contains("=") || pair.hasPrefix("=") {
            throw ValidationError("--option \(pair) is not of the form name=value.")
        }
        if let base { try AdminServer.validateBase(base) }
        if listJobs && files != ["-"] { throw ValidationError("--list-jobs takes no lists.") }
        if let server { try AdminServer.validate(server) }
        if server != nil && (settings.file != nil || !settings.values.isEmpty) {
            throw ValidationError("--config and --set cannot be combined with --server.")
        }
        if let report, !Files.isDirectory(Files.directory(of: report)) {
            throw ValidationError("--report is \(report), but the directory \(Files.directory(of: report)) does not exist.")
        }
    }

    private var parallelism: Int { concurrency ?? Processors.available }

    private static let stopSignals = [SIGINT, SIGTERM]

    /// EX_USAGE of `sysexits.h`, as for wrong arguments.
    private static let wrongUsage = ExitCode.validationFailure
    /// 128 plus the number of SIGINT, by the convention of shells.
    private static let interrupted = ExitCode(130)

    /// Runs to the end or to SIGINT. Blocks the calling thread.
    ///
    /// Exits with 0 if all renditions were found or made, 1 if some or a sitemap failed, 64 if the lists are wrong, and 130 after SIGINT or
    /// SIGTERM.
    func run() throws {
        if listJobs { try printJobs() } else { try makeRenditions() }
    }

    /// The answer to `GET /prewarm`.
    private struct Jobs: Decodable {
        var jobs: [PrewarmReport]
    }

    private func printJobs() throws {
        let address = server ?? AdminServer.address
        let client = ServerClient(server: address, token: try AdminServer.token(token))
        let list = try AdminServer.decoded(Jobs.self, AdminServer.document("/prewarm", of: client, at: address))
        if list.jobs.isEmpty { print("no jobs") }
        for job in list.jobs {
            let time = Date(timeIntervalSince1970: Double(job.added ?? 0)).formatted(.iso8601)
            print(
                "\(job.id)  \(time)  \(job.state), \(job.done) of \(job.total) done: \(job.hits) hits, \(job.new) new, "
                    + "\(job.failed) failed, \(NumberText.bytes(job.saved)) saved")
        }
    }

    private func makeRenditions() throws {
        let zygote = server == nil && !dryRun ? try translating(try Zygote.spawn(), to: SettingsError.noWorker) : nil
        defer { zygote?.stop() }
        signal(SIGPIPE, SIG_IGN)
        // A signal ends the process while it reads the lists: there is nothing to complete.
        BlockedSignals.unblock(Self.stopSignals)
        // The defaults of a server are not known.
        let defaults = server == nil ? try serviceConfiguration().defaults : nil
        let pairs = option.map { $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init) }
        let loader = ListLoader(
            format: list, base: base, formats: format.isEmpty ? ["mp4"] : format,
            options: Dictionary(pairs.map { ($0[0], $0[1]) }, uniquingKeysWith: { $1 }), defaults: defaults)
        var isComplete = true
        let skip = { (error: PrewarmRunError) in
            Self.complain(error.description)
            isComplete = false
        }
        let entries = try translating(try loader.read(files, skipping: skip)) { (error: PrewarmRunError) in
            Self.complain(error.description)
            return Self.wrongUsage
        }
        guard !entries.isEmpty else {
            if !isComplete { throw ExitCode.failure }
            Self.complain(
                "The lists name no source; see gifreel prewarm --help for their forms. Relative links of HTML pages need --base."
            )
            throw Self.wrongUsage
        }
        if dryRun { try printRenditions(entries, defaults ?? RenditionDefaults()) } else { try work(entries, defaults, zygote) }
        if !isComplete { throw ExitCode.failure }
    }

    /// Prints the renditions that a run would make.
    private func printRenditions(_ entries: [PrewarmEntry], _ defaults: RenditionDefaults) throws {
        let rules = server == nil ? try serviceConfiguration().fetch.rules : nil
        var wrong = 0
        for entry in entries {
            do throws(RenditionError) {
                let rendition = try entry.rendition(defaults)
                let url = try translating(try Self.canonicalURL(entry.url, rules), to: RenditionError.invalidSourceURL)
                print("\(rendition.canonicalText) \(url)")
            } catch {
                wrong += 1
                let problem = Problem(error)
                Self.complain("\(entry.url): \(problem.code): \(problem.detail)")
            }
        }
        Self.complain("Renditions: \(entries.count). Cannot be made: \(wrong).")
        if wrong > 0 { throw ExitCode.failure }
    }

    /// - Parameter rules: The rules with the mounts; nil for a server, whose mounts are unknown and may contain any file or object.
    private static func canonicalURL(_ url: String, _ rules: SourceRules?) throws(SourceURLError) -> String {
        if let rules { return try rules.source(url).canonical }
        return try SourceURL.canonicalText(of: url)
    }

    private func work(_ entries: [PrewarmEntry], _ defaults: RenditionDefaults?, _ zygote: Zygote?) throws {
        // Threads inherit the mask, so that only one of them receives the signals.
        let signals = BlockedSignals(Self.stopSignals)
        let backend: any PrewarmBackend
        var local: LocalPipeline?
        let evictions: () -> Int64?
        let threads = WorkThreads(count: 1, limit: 8, name: "gifreel-client")
        let journal = try RunJournal(path: self.journal ?? defaultJournal(entries, defaults))
        let prewarmRun = PrewarmRun(entries, journal: journal, defaults: defaults)
        if let server {
            let token = try AdminServer.token(token)
            backend = RemoteBackend(
                server: server, concurrency: parallelism, retries: retries, client: ServerClient(server: server, token: token),
                threads: threads)
            evictions = {
                let client = ServerClient(server: server, token: token, timeout: 5)
                let document = try? AdminServer.document("/cache", of: client, at: server)
                return document.flatMap { try? AdminServer.decoded(CacheSummary.self, $0).evictions }
            }
        } else {
            let opened = try openLocalPipeline(zygote)
            evictions = { opened.evictions }
            backend = LocalBackend(
                pipeline: opened.pipeline, describe: PrewarmOutcome.init, concurrency: parallelism, retries: retries)
            local = opened
        }
        let evictedBefore = evictions()
        let began = ContinuousClock.now
        let display = ProgressDisplay(prewarmRun, isTerminal: isatty(2) == 1)
        display.start()
        let (failure, wasInterrupted) = carryOut(prewarmRun, backend, signals)
        display.finish()
        if let evictedBefore, let evicted = evictions(), evicted > evictedBefore {
            Self.complain(
                "Meanwhile, the cache evicted \(evicted - evictedBefore) renditions, perhaps of this list; see cache.max_bytes."
            )
        }
        if let queuedWrites = local?.close(), queuedWrites > 0 {
            Self.complain("\(queuedWrites) writes to the shared store stay queued in the cache directory.")
        }
        threads.close()
        let seconds = Int((ContinuousClock.now - began) / .seconds(1))
        try conclude(prewarmRun, journal, seconds, failure, wasInterrupted: wasInterrupted)
    }

    /// Produces the unfinished renditions, until all are done, the backend fails, or a signal arrives.
    ///
    /// The first signal cancels the work. The second one ends the process at once; the journal is complete even then.
    private func carryOut(
        _ prewarmRun: PrewarmRun, _ backend: any PrewarmBackend, _ signals: BlockedSignals
    ) -> (failure: PrewarmRunError?, wasInterrupted: Bool) {
        let open = prewarmRun.pending
        let task = Task.detached { () async -> PrewarmRunError? in
            do throws(PrewarmRunError) {
                try await backend.run(open.map { prewarmRun.entries[$0] }) { prewarmRun.finish(open[$0], $1) }
                return nil
            } catch {
                return error
            }
        }
        // The thread is not joined: it waits until the process ends.
        _ = SystemThread.start(name: "gifreel-signals") {
            signals.waitForOne()
            task.cancel()
            signals.waitForOne()
            _exit(Self.interrupted.rawValue)
        }
        let failure = Blocking.wait { await task.value }
        return (failure, task.isCancelled)
    }

    /// Prints the outcome of the run, and throws the exit code for it.
    private func conclude(
        _ prewarmRun: PrewarmRun, _ journal: RunJournal, _ seconds: Int, _ failure: PrewarmRunError?, wasInterrupted: Bool
    ) throws {
        let (totals, results) = (prewarmRun.totals, prewarmRun.results)
        for line in RunSummary.lines(results, totals: totals, of: prewarmRun.entries.count, seconds: seconds) {
            print(line.withoutControls)
        }
        if let report {
            try ReportFile.write(results, totals: totals, of: prewarmRun.entries.count, seconds: seconds, to: report)
        }
        if let error = prewarmRun.journalError { Self.complain("The journal is incomplete. \(error)") }
        if let failure { throw failure }
        if totals.done < prewarmRun.entries.count {
            Self.complain("Interrupted. The same command continues with the other \(prewarmRun.entries.count - totals.done).")
            throw wasInterrupted ? Self.interrupted : ExitCode.failure
        }
        // The next run of this list checks every entry again.
        journal.remove()
        if totals.failed > 0 { throw ExitCode.failure }
    }

    private func serviceConfiguration() throws -> ServiceConfiguration {
        try ServiceConfiguration(settings.read().settings)
    }

    private func openLocalPipeline(_ zygote: Zygote?) throws -> LocalPipeline {
        guard let zygote else { throw PrewarmRunError("There is no worker process.") }
        return try LocalPipeline(try serviceConfiguration(), zygote: zygote, concurrency: parallelism) {
            Self.complain($0)
        }
    }

    /// A path per list and target, below `$XDG_STATE_HOME` (XDG Base Directory Specification). The target is the server, or the
    /// cache directory with all settings, wherever they are set: other settings may produce other renditions, or other
    /// failures.
    private func defaultJournal(_ entries: [PrewarmEntry], _ defaults: RenditionDefaults?) throws -> String {
        let environment = ProcessInfo.processInfo.environment
        let state =
            environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            ?? (environment["HOME"] ?? ".") + "/.local/state"
        let target: String
        if let server {
            target = server.hasSuffix("/") ? String(server.dropLast()) : server
        } else {
            let settings = try settings.read().settings
            let directory = URL(fileURLWithPath: try ServiceConfiguration(settings).cache.directory).standardizedFileURL.path
            target = ([directory] + settings.lines).joined(separator: "\n")
        }
        let fingerprint = ListLoader.fingerprint(of: entries, target: target, defaults: defaults)
        return "\(state)/gifreel/prewarm-\(fingerprint).ndjson"
    }

    private static func complain(_ sentence: String) {
        StandardError.writeLine("gifreel: \(sentence)")
    }
}

extension PrewarmList.Format: ExpressibleByArgument {}

/// A pipeline in this process, on a cache directory that no server uses.
struct LocalPipeline {
    let pipeline: RenditionPipeline
    private let core: RenditionCore
    private let log: LogOutput

    /// Opens the cache directory of the settings.
    ///
    /// - Parameters:
    ///   - concurrency: The number of renditions that are requested at the same time.
    ///   - warn: Called if the kernel confines the workers incompletely, and the settings permit that.
    init(
        _ settings: ServiceConfiguration, zygote: Zygote, concurrency: Int, warn: (String) -> Void
    ) throws {
        var configuration = settings
        if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.settings.requiresSandbox) {
            warn(warning)
        }
        configuration.pool.queue = max(configuration.pool.queue, concurrency)
        // A run on a directory of its own takes no part in a cluster, and misses its purges.
        let holdsPuts = configuration.cluster != nil
        configuration.cluster = nil
        log = LogOutput(format: configuration.settings.log.format, level: .error)
        let logger = log.makeLogger()
        do {
            core = try RenditionCore(
                configuration, zygote: zygote, registry: PrometheusRegistry([]), holdsPuts: holdsPuts, logger: logger)
        } catch let error as CacheError {
            guard case .directoryInUse = error else { throw error }
            throw PrewarmRunError("A server uses this cache directory; give its URL with --server. (\(error))")
        }
        pipeline = core.pipeline(configuration, logger: logger)
    }

    /// The number of renditions that the cache has evicted since it was opened.
    var evictions: Int64 { core.cache.statistics().evictions }

    private static let storeDrainTimeout = Duration.seconds(60)

    /// Cancels conversions, sends queued writes to the shared store, and closes the cache. Blocks the calling thread.
    ///
    /// - Returns: The number of writes that stay queued in the cache directory.
    func close() -> Int {
        // Either nothing is left to convert, or a conversion in progress would delay the end for minutes.
        core.pool.cancelAll()
        let queuedWrites = Blocking.wait { [core] in await core.sendQueuedWrites(within: Self.storeDrainTimeout) }
        core.close()
        log.close()
        return queuedWrites
    }
}

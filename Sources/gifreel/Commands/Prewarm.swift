internal import Cache
internal import Fetch
internal import Foundation
internal import Glibc
internal import Logging
internal import Logs
package import Prewarm
internal import PrometheusMetrics
internal import Renditions
internal import Sandbox
internal import Settings
internal import Synchronization
internal import SystemIO

/// `gifreel prewarm`: makes the renditions of lists of sources, in a cache directory or by a running server.
package struct Prewarm {
    /// Paths of lists; `-` is standard input.
    package var files: [String]
    package var listFormat: PrewarmList.Format?
    /// The URL of HTML pages, to resolve relative links.
    package var base: String?
    /// Formats and options of entries that set none.
    package var formats: [String]
    package var options: [String: String]
    /// The URL of the server that does the work; nil works directly on the cache directory.
    package var server: String?
    package var token: String?
    /// The settings for work without a server, as for `gifreel serve`.
    package var configurationFile: String?
    package var flags: [String]
    package var concurrency: Int
    package var retries: Int
    package var isDryRun: Bool
    /// Nil selects a file per list in the user's state directory.
    package var journal: String?
    package var report: String?

    /// Exit codes.
    private enum Code {
        static let failed: Int32 = 1
        static let usage: Int32 = 2
        /// 128 plus the number of SIGINT, by the convention of shells.
        static let interrupted: Int32 = 130
    }

    package init(
        files: [String], listFormat: PrewarmList.Format?, base: String?, formats: [String], options: [String: String],
        server: String?, token: String?, configurationFile: String?, flags: [String], concurrency: Int, retries: Int,
        isDryRun: Bool, journal: String?, report: String?
    ) {
        self.files = files
        self.listFormat = listFormat
        self.base = base
        self.formats = formats
        self.options = options
        self.server = server.map { $0.hasSuffix("/") ? String($0.dropLast()) : $0 }
        self.token = token
        self.configurationFile = configurationFile
        self.flags = flags
        self.concurrency = concurrency
        self.retries = retries
        self.isDryRun = isDryRun
        self.journal = journal
        self.report = report
    }

    /// Runs to the end or to SIGINT. Blocks the calling thread.
    ///
    /// - Returns: The exit code: 0 if all renditions are in the cache, 1 if some failed, 2 if the lists are wrong,
    ///   130 after SIGINT or SIGTERM.
    package func run() -> Int32 {
        let needsWorkers = server == nil && !isDryRun
        let zygote: Zygote?
        do throws(SystemError) {
            zygote = needsWorkers ? try Zygote.spawn() : nil
        } catch {
            return Self.complain("The worker process cannot be started: \(error).", Code.failed)
        }
        defer { zygote?.stop() }
        let signals = BlockedSignals([SIGINT, SIGTERM])
        signal(SIGPIPE, SIG_IGN)
        let entries: [PrewarmEntry]
        do throws(PrewarmRunError) {
            entries = try ListLoader(
                format: listFormat, base: base, formats: formats, options: options
            ).read(files)
        } catch {
            return Self.complain(error.description, Code.usage)
        }
        guard !entries.isEmpty else {
            return Self.complain("The lists name no source; see gifreel prewarm --help for their forms.", Code.usage)
        }
        return isDryRun ? dryRun(entries) : work(entries, zygote, signals)
    }

    /// Prints the renditions that a run would make.
    private func dryRun(_ entries: [PrewarmEntry]) -> Int32 {
        var wrong = 0
        for entry in entries {
            do throws(RenditionError) {
                let (rendition, url) = try entry.target()
                print("\(rendition.canonicalText) \(url.canonical)")
            } catch {
                wrong += 1
                let failure = PrewarmFailure(error)
                _ = Self.complain("\(entry.url): \(failure.code): \(failure.detail)", 0)
            }
        }
        _ = Self.complain("\(entries.count) renditions, \(wrong) of them with errors.", 0)
        return wrong == 0 ? 0 : Code.failed
    }

    private func work(_ entries: [PrewarmEntry], _ zygote: Zygote?, _ signals: BlockedSignals) -> Int32 {
        let prewarmRun: PrewarmRun
        let journal: RunJournal
        let backend: any PrewarmBackend
        var local: (core: RenditionCore, log: LogOutput)?
        let threads = WorkThreads(count: 1, limit: 8, name: "gifreel-client")
        do {
            journal = try RunJournal(path: self.journal ?? defaultJournal(entries))
            prewarmRun = PrewarmRun(entries, journal: journal)
            if let server {
                backend = try remoteBackend(server, threads)
            } else {
                let (core, pipeline, log) = try localPipeline(zygote)
                backend = LocalBackend(
                    pipeline: pipeline, describe: PrewarmFailure.init, concurrency: concurrency, retries: retries)
                local = (core, log)
            }
        } catch {
            return Self.complain("\(error)", Code.failed)
        }
        let began = ContinuousClock.now
        let display = ProgressDisplay(prewarmRun, isTerminal: isatty(2) == 1)
        display.start()
        let (failure, wasInterrupted) = carryOut(prewarmRun, backend, signals)
        display.finish()
        local?.core.close()
        local?.log.close(within: .seconds(1))
        threads.close()
        let seconds = Int((ContinuousClock.now - began) / .seconds(1))
        return close(prewarmRun, journal, seconds, failure, wasInterrupted: wasInterrupted)
    }

    /// Makes the unfinished renditions, until all are done, the backend fails, or a signal arrives.
    private func carryOut(
        _ prewarmRun: PrewarmRun, _ backend: any PrewarmBackend, _ signals: BlockedSignals
    ) -> (failure: PrewarmRunError?, wasInterrupted: Bool) {
        let open = prewarmRun.pending
        let work = Task.detached { () -> PrewarmRunError? in
            do throws(PrewarmRunError) {
                try await backend.run(open.map { prewarmRun.entries[$0] }) { prewarmRun.finish(open[$0], $1) }
                return nil
            } catch {
                return error
            }
        }
        let wasInterrupted = InterruptFlag()
        // The thread is not joined. A second signal ends the process at once, after which the journal is complete too.
        _ = SystemThread.start(name: "gifreel-signals") {
            signals.waitForOne()
            wasInterrupted.set()
            work.cancel()
            signals.waitForOne()
            _exit(Code.interrupted)
        }
        let failure = Blocking.wait { await work.value }
        return (failure, wasInterrupted.isSet)
    }

    /// Prints the outcome of the run.
    private func close(
        _ prewarmRun: PrewarmRun, _ journal: RunJournal, _ seconds: Int, _ failure: PrewarmRunError?, wasInterrupted: Bool
    ) -> Int32 {
        let (totals, results) = (prewarmRun.totals, prewarmRun.results)
        for line in RunSummary.lines(results, totals: totals, of: prewarmRun.entries.count, seconds: seconds) { print(line) }
        if let report {
            do throws(PrewarmRunError) {
                try ReportFile.write(results, totals: totals, of: prewarmRun.entries.count, seconds: seconds, to: report)
            } catch {
                return Self.complain(error.description, Code.failed)
            }
        }
        if let error = prewarmRun.journalError { _ = Self.complain("The journal is incomplete. \(error)", 0) }
        if let failure { return Self.complain(failure.description, Code.failed) }
        if totals.done < prewarmRun.entries.count {
            return Self.complain(
                "Interrupted. The same command goes on with the \(prewarmRun.entries.count - totals.done) that are left.",
                wasInterrupted ? Code.interrupted : Code.failed)
        }
        // The next run of this list checks every entry again.
        journal.remove()
        return totals.failed == 0 ? 0 : Code.failed
    }

    private func remoteBackend(_ server: String, _ threads: WorkThreads) throws(PrewarmRunError) -> RemoteBackend {
        guard let token, !token.isEmpty else {
            throw PrewarmRunError("--server needs the admin token of the server; set GIFREEL_ADMIN_TOKEN or give --token.")
        }
        return RemoteBackend(
            server: server, concurrency: concurrency, retries: retries,
            client: ServerClient(server: server, token: token), threads: threads)
    }

    /// The pipeline on a cache directory that no server uses.
    private func localPipeline(_ zygote: Zygote?) throws -> (RenditionCore, RenditionPipeline, LogOutput) {
        guard let zygote else { throw PrewarmRunError("There is no worker process.") }
        let settings = try SettingsReader.read(
            file: configurationFile, environment: ProcessInfo.processInfo.environment, flags: flags
        ).settings
        var configuration = try ServiceConfiguration(settings)
        if let warning = try ConfinementCheck.check(zygote.confinement(), isRequired: configuration.requiresSandbox) {
            _ = Self.complain(warning, 0)
        }
        configuration.pool.queue = max(configuration.pool.queue, concurrency)
        do {
            let log = LogOutput(format: configuration.logFormat == .json ? .json : .text)
            let core = try RenditionCore(configuration, zygote: zygote, registry: PrometheusRegistry([])) { _ in }
            return (core, core.pipeline(configuration, logger: log.makeLogger(level: .error)), log)
        } catch let error as CacheError {
            guard case .directoryInUse = error else { throw error }
            throw PrewarmRunError("A server uses this cache directory; give its URL with --server. (\(error))")
        }
    }

    /// A path per list and target, below `$XDG_STATE_HOME` (XDG Base Directory Specification).
    private func defaultJournal(_ entries: [PrewarmEntry]) -> String {
        let environment = ProcessInfo.processInfo.environment
        let state =
            environment["XDG_STATE_HOME"].flatMap { $0.hasPrefix("/") ? $0 : nil }
            ?? (environment["HOME"] ?? ".") + "/.local/state"
        let target = server ?? ([configurationFile ?? ""] + flags).joined(separator: "\n")
        return "\(state)/gifreel/prewarm-\(ListLoader.fingerprint(of: entries, target: target)).ndjson"
    }

    private static func complain(_ sentence: String, _ code: Int32) -> Int32 {
        FileHandle.standardError.write(Data("gifreel: \(sentence)\n".utf8))
        return code
    }
}

private final class InterruptFlag: Sendable {
    private let flag = Atomic(false)

    var isSet: Bool { flag.load(ordering: .acquiring) }

    func set() { flag.store(true, ordering: .releasing) }
}

internal import ArgumentParser
internal import Fetch
internal import Foundation
internal import Glibc
internal import Media
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Settings
internal import SystemIO
internal import Web

/// `gifreel block`: prints the lines for `block.list` that refuse a source and its variants, or purges the stored renditions of
/// sources on a server's list.
struct BlockCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "block",
        abstract: "Prints lines for block.list: the hashes of a source and of its pictures.",
        usage: """
            gifreel block --label "case 17" URL|FILE… >>block.list
            gifreel block --apply
            """,
        discussion: """
            URLs are fetched as the settings permit. Pictures with too little detail to be told from others are left out. \
            --apply purges what a running server has stored of sources on its list.

            Exit status: 0 if every source has its lines, or everything is purged, else 1.
            """)

    @Flag(help: "Purges the stored sources of a running server that are on its list.")
    var apply = false

    @OptionGroup var admin: AdminServer

    @Option(help: "The text to log when a line matches, up to 200 bytes. Default: the URL or file.")
    var label: String?

    @OptionGroup var settings: SettingsArguments

    @Argument(help: "URLs or files.", completion: .file())
    var sources: [String] = []

    func validate() throws {
        if sources.isEmpty == !apply { throw ValidationError("Give URLs or files, or --apply.") }
        if let label, !BlockList.isLabel(label) {
            throw ValidationError("--label must be a text of 1 to 200 bytes, without line breaks and spaces around it.")
        }
    }

    /// Prints the lines. Blocks the calling thread, which must be the only one of the process because a zygote is forked.
    func run() throws {
        if apply { return try applyList() }
        let zygote = try translating(try Zygote.fork(warmsUp: false), to: SettingsError.noWorker)
        defer { zygote.stop() }
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("gifreel-block-\(UUID().uuidString)").path
        let configuration = try ServiceConfiguration(try settings.read().settings).fetch
        guard mkdir(folder, 0o700) == 0 else { throw SystemError("mkdir", code: errno) }
        defer { try? FileManager.default.removeItem(atPath: folder) }
        var hasFailed = false
        for source in sources {
            do throws(ConvertFailure) {
                show(try facts(of: source, JobSupervisor(zygote: zygote), configuration, folder), of: source)
            } catch {
                hasFailed = true
                error.report()
            }
        }
        if hasFailed { throw ExitCode.failure }
    }

    /// Requests the stored sources that are on the server's list, and purges each.
    private func applyList() throws {
        let client = ServerClient(server: admin.server, token: try AdminServer.token(admin.token))
        var (compared, unknown, isComplete, after) = (0, 0, true, "")
        while true {
            let target = "/cache?blocked=true" + (after.isEmpty ? "" : "&after=\(PercentEncoding.encode(after))")
            let part = try AdminServer.decoded(BlockedSources.self, AdminServer.document(target, of: client, at: admin.server))
            compared += part.compared
            unknown += part.withoutFingerprints
            for source in part.blocked {
                isComplete =
                    try PurgeCommand.purge(.url(source.url), with: client, at: admin.server, note: source.label) && isComplete
            }
            guard let next = part.next else { break }
            after = next
        }
        print("\(compared) sources compared, \(unknown) of them without fingerprints")
        if !isComplete { throw ExitCode.failure }
    }

    private func facts(
        of source: String, _ supervisor: JobSupervisor, _ configuration: FetchConfiguration, _ folder: String
    ) throws(ConvertFailure) -> FactsDocument {
        let isURL = ["http://", "https://"].contains { source.lowercased().hasPrefix($0) }
        let input = isURL ? folder + "/source" : source
        if isURL { try fetch(source, to: input, configuration) }
        var options = TranscodeOptions.standard
        options.facts = .fingerprints
        let output = folder + "/facts"
        let job = WorkerJob(transcoder: Transcoder(output: .facts, options: options), allowance: WorkerAllowance())
        do throws(ConvertFailure) {
            _ = try ConvertFile(supervisor: supervisor, job: job, input: input, output: output).run()
        } catch {
            throw isURL ? ConvertFailure(path: source, code: error.code, sentence: error.sentence) : error
        }
        guard let bytes = try? Files.read(output), let document = FactsDocument(json: bytes) else {
            throw ConvertFailure(path: source, code: "file_failed", sentence: "The facts cannot be read.")
        }
        return document
    }

    private func fetch(_ url: String, to path: String, _ configuration: FetchConfiguration) throws(ConvertFailure) {
        let source = try translating(try SourceURL(url)) { (error: SourceURLError) in
            ConvertFailure(Problem(.invalidSourceURL(error)), of: url)
        }
        do throws(FetchError) {
            let outcome = try Blocking.wait { () async throws(FetchError) in
                let fetcher = try Fetcher(configuration: configuration)
                defer { fetcher.shutdown() }
                return try await fetcher.fetch(source)
            }
            guard case .fetched(let fetched) = outcome else { throw .closed }
            guard let bytes = try? fetched.bytes.readAll(), (try? Files.write(bytes, to: path)) != nil else {
                throw .exhausted(cause: "the temporary directory is full")
            }
        } catch {
            throw ConvertFailure(Problem(.fetchFailed(error)), of: url)
        }
    }

    private func show(_ document: FactsDocument, of source: String) {
        let label = label ?? (BlockList.isLabel(source) ? source : "unnamed")
        print("sha256:\(document.source.facts.sha256) \(label)")
        for fingerprint in document.fingerprints ?? [] {
            if fingerprint.isComparable {
                print("pdq:\(fingerprint.pdq) \(label)")
            } else {
                print("# frame \(fingerprint.frame) has too little detail: quality \(fingerprint.quality)")
            }
        }
    }
}

internal import ArgumentParser
internal import Glibc
internal import Media
internal import Prewarm
internal import Renditions
internal import Sandbox
internal import Settings
internal import Synchronization
internal import SystemIO
internal import Web

/// `gifreel convert`: converts one file, or many into a directory, one per processor at a time.
struct ConvertCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "convert",
        abstract: "Converts GIFs, other animations and short videos without a server.",
        usage: "gifreel convert IN.gif OUT.mp4 [options]\ngifreel convert --to DIR A.gif B.gif … [options]",
        discussion: """
            OUT may be a directory. With --to, a directory among the inputs stands for all files below it whose name ends in \
            .gif, .apng, .png or .webp; the results keep their paths below it.
            """)

    @Option(
        name: .customLong("to"), help: "Write the results to this directory, which is created if it does not exist.",
        completion: .directory)
    var directory: String?

    @Option(
        help: "mp4, webm, avif, awebp, gif, jpg, png, webp or json. Default: the extension of OUT; mp4 with --to or -."
    )
    var format: String?

    @OptionGroup(title: "Options of the rendition") var options: RenditionOptions

    @Argument(
        help: "IN and OUT, - for standard input and output; with --to any number of GIFs and directories.", completion: .file())
    var files: [String] = []

    /// The number of files up to which warming up the zygote takes longer than it saves.
    private static let fewFiles = 8
    /// The maximum number of files that a message names.
    private static let mostNamed = 3

    func validate() throws {
        if files.isEmpty {
            throw ValidationError("Give IN and OUT, such as a.gif a.mp4, or --to DIR and any number of GIFs and directories.")
        }
        guard directory == nil, files.count != 2 else { return }
        var given = files.prefix(Self.mostNamed).joined(separator: ", ")
        if files.count > Self.mostNamed { given += " and \(files.count - Self.mostNamed) more" }
        throw ValidationError("Give IN and OUT, or --to DIR and GIFs. Given without --to: \(given).")
    }

    /// Converts. Blocks the calling thread, which must be the only one of the process because a zygote is forked.
    ///
    /// Exits with 1 if a file failed; standard error then has its path, a code and a sentence.
    func run() throws {
        let plan = try plan()
        let zygote = try translating(try Zygote.fork(warmsUp: plan.files.count > Self.fewFiles)) { (error: SystemError) in
            Self.failure("gifreel", "no_worker", "The worker process cannot be started: \(error).")
        }
        defer { zygote.stop() }
        signal(SIGPIPE, SIG_IGN)
        // An error here is a mistake in the arguments, for which no program needs a code.
        let (rendition, output) = try translating(try request(plan), to: SettingsError.init)
        do throws(FileError) {
            for directory in plan.directories { try Files.createDirectory(directory) }
        } catch {
            throw Self.failure(error.path, "file_failed", "The directory cannot be created: \(error.reason).")
        }
        let processors = Processors.available
        let workers = min(processors, plan.files.count)
        let job = WorkerJob(
            transcoder: Transcoder(
                output: output, options: rendition.options,
                threads: max(1, processors / max(1, workers))),
            allowance: WorkerAllowance().times(rendition.cost, memory: rendition.memory))
        let supervisor = JobSupervisor(zygote: zygote)
        let bar = directory == nil && isatty(STDERR_FILENO) == 1 ? FrameBar() : nil
        let conversions = plan.files.map {
            ConvertFile(supervisor: supervisor, job: job, input: $0.input, output: $0.output, bar: bar)
        }
        if convert(conversions, workers) > 0 { throw ExitCode.failure }
    }

    /// - Throws: `ExitCode.validationFailure`, after a sentence on standard error, for files that cannot be combined.
    private func plan() throws -> ConvertPlan {
        do throws(ConvertPlan.Mistake) {
            if let directory {
                return try ConvertPlan(inputs: files, directory: directory, fileExtension: format ?? "mp4")
            }
            return try ConvertPlan(input: files[0], output: files[1], fileExtension: format ?? "mp4")
        } catch {
            StandardError.writeLine("gifreel: \(error)")
            throw ExitCode.validationFailure
        }
    }

    /// The rendition to produce from each file. Without --format, the extension of the first output names the format; for
    /// standard output it is `mp4`.
    private func request(_ plan: ConvertPlan) throws(Problem) -> (Rendition, OutputFormat) {
        let path = plan.files.first?.output ?? "-"
        let names = Rendition.Format.offered.filter { $0.output != nil }.map(\.rawValue).joined(separator: ", ")
        guard let name = format ?? (path == "-" ? "mp4" : Self.pathExtension(path)) else {
            throw .badRequest("The name “\(path)” has no extension; give --format with one of \(names).")
        }
        guard let format = Rendition.Format(rawValue: name), let output = format.output else {
            throw .badRequest(
                "There is no format “\(name)” to convert to; give one of \(names) as the extension or with --format.")
        }
        let options = options.pairs.map { RenditionPresets.Option(name: $0.name, value: $0.value) }
        return (try translating(try RenditionDefaults().rendition(format, of: options), to: Problem.init), output)
    }

    /// The text after the last dot of the file's name, in lower case; nil if there is none.
    private static func pathExtension(_ path: String) -> String? {
        let name = path.split(separator: "/").last ?? ""
        return name.lastIndex(of: ".").map { name[$0...].dropFirst().lowercased() }.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Converts the files on as many threads as there are workers, and returns the number of files that failed.
    private func convert(_ files: [ConvertFile], _ workers: Int) -> Int {
        let progress = Progress(total: files.count, isShown: directory != nil && isatty(STDERR_FILENO) == 1)
        let work: @Sendable () -> Void = {
            while let index = progress.takeNext() { progress.count(Self.convertOne(files[index])) }
        }
        let threads = (1..<max(1, workers)).compactMap { _ in SystemThread.start(name: "gifreel-convert", work) }
        // This thread is one of them, so that all files are converted even if no thread can be started.
        work()
        for thread in threads { thread.join() }
        return progress.finish()
    }

    /// The sizes of input and output; nil after a failure, which standard error names.
    private static func convertOne(_ file: ConvertFile) -> (input: Int, output: Int)? {
        do throws(ConvertFailure) {
            return try file.run()
        } catch {
            error.report()
            return nil
        }
    }

    /// Prints the failure on standard error, and returns the exit code for it.
    private static func failure(_ name: String, _ code: String, _ sentence: String) -> ExitCode {
        ConvertFailure(path: name, code: code, sentence: sentence).report()
        return .failure
    }
}

/// Hands out the files and counts those that are done. On a terminal, draws a progress bar, and at the end a summary in its
/// place.
private final class Progress: Sendable {
    private struct State {
        var next = 0
        var done = 0
        var failed = 0
        /// Bytes of the files that are converted, and of their results.
        var sizes = (input: 0, output: 0)
    }

    private let total: Int
    private let isShown: Bool
    private let start = ContinuousClock.now
    private let state = Mutex(State())

    init(total: Int, isShown: Bool) {
        self.total = total
        self.isShown = isShown
    }

    /// The index of the next file; nil when all are taken.
    func takeNext() -> Int? {
        state.withLock { state in
            guard state.next < total else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    /// - Parameter sizes: The bytes of the file and its result; nil if it failed.
    func count(_ sizes: (input: Int, output: Int)?) {
        state.withLock { state in
            state.done += 1
            if let sizes {
                state.sizes.input += sizes.input
                state.sizes.output += sizes.output
            } else {
                state.failed += 1
            }
            if isShown { StandardError.write("\r\(FrameBar.bar(state.done, of: total))") }
        }
    }

    /// Writes the summary and returns the number of files that failed.
    func finish() -> Int {
        state.withLock { state in
            if isShown {
                let seconds = NumberText.oneDecimal(start.duration(to: .now) / .seconds(1))
                let (input, output) = state.sizes
                let sizes =
                    output == 0
                    ? ""
                    : ": \(NumberText.bytes(input)) became \(NumberText.bytes(output)) (\(NumberText.percent(output, of: input)))"
                let failures = state.failed == 0 ? "" : "; \(state.failed) failed"
                // Erases the bar.
                StandardError.write("\r\u{1B}[K\(total - state.failed) of \(total) files in \(seconds) s\(sizes)\(failures)\n")
            }
            return state.failed
        }
    }
}

/// The progress of one conversion on a line of a terminal. It appears if the conversion takes longer than a second.
final class FrameBar: Sendable {
    private struct State {
        /// The first report, from which the rate counts: an encoder holds back the first frames.
        var first: (time: ContinuousClock.Instant, done: Int)?
        var isShown = false
    }

    /// The time before the bar appears.
    private static let patience: Duration = .seconds(1)

    private let began: ContinuousClock.Instant
    private let state = Mutex(State())

    init(since began: ContinuousClock.Instant = .now) {
        self.began = began
    }

    func show(_ progress: FrameProgress) {
        if let text = drawing(progress, at: .now) { StandardError.write(text) }
    }

    func erase() {
        if let text = erasure() { StandardError.write(text) }
    }

    /// The text that draws the bar; nil before the bar appears.
    func drawing(
        _ progress: FrameProgress, at now: ContinuousClock.Instant, columns: Int = StandardError.columns
    ) -> String? {
        state.withLock { state in
            let first = state.first ?? (now, progress.done)
            state.first = first
            guard began.duration(to: now) >= Self.patience else { return nil }
            state.isShown = true
            // The line replaces the previous one, unless it is longer than the terminal; EL (ECMA-48) erases the rest of the previous line.
            let line = Self.line(progress, since: first.done, elapsed: first.time.duration(to: now))
            return "\r\(line.prefix(columns - 1))\u{1B}[K"
        }
    }

    /// The text that erases the bar; nil if the bar is not shown.
    func erasure() -> String? {
        state.withLock { state in
            defer { state.isShown = false }
            return state.isShown ? "\r\u{1B}[K" : nil
        }
    }

    /// `███████░░░░░ 41/150`
    static func bar(_ done: Int, of total: Int) -> String {
        let width = 30
        let filled = done * width / max(1, total)
        return String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled) + " \(done)/\(total)"
    }

    /// `███████░░░░░ 41/150 frames  0:03 left`
    ///
    /// - Parameters:
    ///   - first: Frames that were done when `elapsed` began.
    static func line(_ progress: FrameProgress, since first: Int, elapsed: Duration) -> String {
        let text = "\(bar(progress.done, of: progress.total)) frames"
        guard progress.done > first else { return text }
        let left = elapsed / .seconds(1) / Double(progress.done - first) * Double(progress.total - progress.done)
        return text + "  \(NumberText.clock(Int(left.rounded(.up)))) left"
    }
}

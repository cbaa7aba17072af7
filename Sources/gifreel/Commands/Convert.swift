internal import Foundation
internal import Glibc
internal import HTTP
internal import Media
internal import Renditions
internal import Sandbox
internal import Synchronization
internal import SystemIO
internal import Web

/// `gifreel convert`: converts one file, or many into a directory, one per processor at a time.
package struct Convert {
    private let plan: ConvertPlan
    /// The name of the format; nil takes the first output's extension, and `mp4` for standard output.
    private let format: String?
    private let options: [(name: String, value: String)]
    private let showsProgress: Bool

    /// For up to this many files, warming up the zygote takes longer than it saves.
    private static let fewFiles = 8

    /// - Parameters:
    ///   - options: Name and value of each option of the rendition.
    ///   - showsProgress: Whether to draw a progress bar on standard error.
    package init(plan: ConvertPlan, format: String?, options: [(name: String, value: String)], showsProgress: Bool) {
        self.plan = plan
        self.format = format
        self.options = options
        self.showsProgress = showsProgress
    }

    /// Converts. Blocks the calling thread, which must be the only one of the process because a zygote is forked.
    ///
    /// - Returns: The exit code: 0, or 1 if a file failed; standard error then has its path, a code and a sentence.
    package func run() -> Int32 {
        let zygote: Zygote
        do throws(SystemError) {
            zygote = try Zygote.fork(warmsUp: plan.files.count > Self.fewFiles)
        } catch {
            return Self.report("gifreel", "no_worker", "The worker process cannot be started: \(error).")
        }
        defer { zygote.stop() }
        signal(SIGPIPE, SIG_IGN)
        let rendition: Rendition
        let output: OutputFormat
        do throws(Problem) {
            (rendition, output) = try request()
        } catch {
            return Self.report("gifreel", error.code, error.detail)
        }
        do throws(FileError) {
            for directory in plan.directories { try Files.createDirectory(directory) }
        } catch {
            return Self.report(error.path, "file_failed", "The directory cannot be created: \(error.reason).")
        }
        let processors = HTTPServerConfiguration().threads
        let workers = min(processors, plan.files.count)
        let job = WorkerJob(
            transcoder: Transcoder(
                output: output, options: rendition.options,
                threads: max(1, processors / max(1, workers))))
        let supervisor = JobSupervisor(zygote: zygote)
        return convertAll(
            plan.files.map { ConvertFile(supervisor: supervisor, job: job, input: $0.input, output: $0.output) }, workers)
    }

    /// The rendition to make of each file.
    private func request() throws(Problem) -> (Rendition, OutputFormat) {
        let name = format ?? plan.files.first.flatMap { $0.output == "-" ? "mp4" : Self.pathExtension($0.output) } ?? ""
        guard let format = Rendition.Format(rawValue: name), let output = format.output else {
            let names = Rendition.Format.allCases.filter { $0.output != nil }.map(\.rawValue).joined(separator: ", ")
            throw .badRequest(
                "There is no format “\(name)” to convert to; give one of \(names) as the extension or with --format.")
        }
        do throws(RenditionError) {
            var rendition = Rendition(format: format)
            for option in options { try rendition.set(option.name, to: option.value) }
            try rendition.check()
            return (rendition, output)
        } catch {
            throw Problem(error)
        }
    }

    /// The text after the last dot of the file's name, in lower case; nil if there is no dot.
    private static func pathExtension(_ path: String) -> String? {
        let name = path.split(separator: "/").last ?? ""
        return name.lastIndex(of: ".").map { name[$0...].dropFirst().lowercased() }
    }

    private func convertAll(_ files: [ConvertFile], _ workers: Int) -> Int32 {
        let progress = Progress(total: files.count, isShown: showsProgress)
        let threads = (0..<workers).compactMap { _ in
            SystemThread.start(name: "gifreel-convert") {
                while let index = progress.takeNext() { progress.count(Self.convert(files[index])) }
            }
        }
        for thread in threads { thread.join() }
        return progress.finish()
    }

    private static func convert(_ file: ConvertFile) -> Int32 {
        do throws(ConvertFailure) {
            try file.run()
            return 0
        } catch {
            return report(error.path, error.code, error.sentence)
        }
    }

    private static func report(_ name: String, _ code: String, _ sentence: String) -> Int32 {
        StandardError.write("\(name): \(code): \(sentence)\n")
        return 1
    }
}

/// Hands out the files, counts those that are done, and draws a progress bar on one line of a terminal.
private final class Progress: Sendable {
    private let total: Int
    private let isShown: Bool
    private let state = Mutex((next: 0, done: 0, failed: 0))

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

    func count(_ code: Int32) {
        state.withLock { state in
            state.done += 1
            if code != 0 { state.failed += 1 }
            guard isShown else { return }
            let width = 30
            let filled = state.done * width / max(1, total)
            let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: width - filled)
            StandardError.write("\r\(bar) \(state.done)/\(total)")
        }
    }

    /// The exit code.
    func finish() -> Int32 {
        state.withLock { state in
            if isShown { StandardError.write("\n") }
            return state.failed == 0 ? 0 : 1
        }
    }
}

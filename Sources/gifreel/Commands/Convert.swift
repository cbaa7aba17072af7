internal import Foundation
internal import Glibc
internal import HTTP
internal import Media
internal import Renditions
internal import Sandbox
internal import Synchronization
internal import SystemIO
internal import Web

/// `gifreel convert`: one file, or many into a directory, as many at once as there are processors.
package struct Convert {
    package var files: [(input: String, output: String)]
    /// The name of the format; nil goes by the first output's extension, and means `mp4` for standard output.
    package var format: String?
    /// `name=value` of the rendition's options.
    package var options: [(name: String, value: String)]
    /// Says how far it is, where standard error is a terminal.
    package var showsProgress: Bool

    /// Up to so many files, warming the zygote up takes longer than it saves.
    private static let fewFiles = 8

    package init(
        files: [(input: String, output: String)], format: String?, options: [(name: String, value: String)], showsProgress: Bool
    ) {
        self.files = files
        self.format = format
        self.options = options
        self.showsProgress = showsProgress
    }

    /// Converts. Blocks the calling thread, which must be the process' only one: a zygote is forked.
    ///
    /// - Returns: The exit code: 0, or 1 where a file failed; standard error then has a code and a sentence each.
    package func run() -> Int32 {
        let zygote: Zygote
        do throws(SystemError) {
            zygote = try Zygote.fork(warmsUp: files.count > Self.fewFiles)
        } catch {
            return Self.report("gifreel", Problem(500, "no_worker", "\(error)"))
        }
        defer { zygote.stop() }
        signal(SIGPIPE, SIG_IGN)
        let rendition: Rendition
        let output: OutputFormat
        do throws(Problem) {
            (rendition, output) = try asked()
        } catch {
            return Self.report("gifreel", error)
        }
        let processors = HTTPServerConfiguration().threads
        let workers = min(processors, files.count)
        let job = WorkerJob(
            transcoder: Transcoder(
                output: output, options: rendition.options,
                threads: max(1, processors / max(1, workers))))
        let supervisor = JobSupervisor(zygote: zygote)
        return convertAll(
            files.map { ConvertFile(supervisor: supervisor, job: job, input: $0.input, output: $0.output) }, workers)
    }

    /// What is to be made of every file.
    private func asked() throws(Problem) -> (Rendition, OutputFormat) {
        let name = format ?? files.first.flatMap { $0.output == "-" ? "mp4" : Self.pathExtension($0.output) } ?? ""
        guard let format = Rendition.Format(rawValue: name), let output = format.output else {
            let names = Rendition.Format.allCases.filter { $0.output != nil }.map(\.rawValue).joined(separator: ", ")
            throw .badRequest("There is no format “\(name)” to convert to: give one of \(names) as extension or with --format.")
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

    /// What follows the last dot of the last part of a path, in lower case; nil where there is none.
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
        do throws(Problem) {
            _ = try file.run()
            return 0
        } catch {
            return report(file.input, error)
        }
    }

    private static func report(_ name: String, _ problem: Problem) -> Int32 {
        FileHandle.standardError.write(Data("\(name): \(problem.code): \(problem.detail)\n".utf8))
        return 1
    }
}

/// Which file is next, and how many of how many are done, on one line of a terminal.
private final class Progress: Sendable {
    private let total: Int
    private let isShown: Bool
    private let state = Mutex((next: 0, done: 0, failed: 0))

    init(total: Int, isShown: Bool) {
        self.total = total
        self.isShown = isShown
    }

    /// The number of a file that nobody has taken; nil when all are taken.
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
            FileHandle.standardError.write(Data("\r\(bar) \(state.done)/\(total)".utf8))
        }
    }

    /// The exit code.
    func finish() -> Int32 {
        state.withLock { state in
            if isShown { FileHandle.standardError.write(Data("\n".utf8)) }
            return state.failed == 0 ? 0 : 1
        }
    }
}

internal import CLinux
internal import Fetch
internal import Glibc
internal import Media
internal import Renditions
internal import Sandbox
internal import Store
internal import SystemIO
internal import Web

/// Why a file was not converted: the path that is at fault, an error code and a sentence.
struct ConvertFailure: Error {
    let path: String
    let code: String
    let sentence: String

    func report() { StandardError.writeLine("\(path): \(code): \(sentence)") }
}

extension ConvertFailure {
    /// The input cannot be converted. Where the detail blames a server, which a command does not have, the sentence is the cause.
    init(_ problem: Problem, of input: String) {
        let cause = problem.isServerFault ? problem.cause : nil
        self.init(
            path: input, code: problem.code, sentence: cause.map { "The conversion was interrupted: \($0)." } ?? problem.detail)
    }

    /// A file cannot be read or written.
    fileprivate init(_ path: String, _ action: String, _ error: SystemError) {
        self.path = path
        code = "file_failed"
        let directory = Files.directory(of: path)
        sentence =
            switch error.code {
            case ENOENT where action == "written": "The directory \(directory) does not exist."
            case EISDIR where action == "read": "This is a directory; give --to DIR to convert the GIFs in it."
            default: "The file cannot be \(action): \(String(cString: strerror(error.code)))."
            }
    }
}

/// Converts one file in a worker process, as a cache miss of the server does.
struct ConvertFile: Sendable {
    let supervisor: JobSupervisor
    let job: WorkerJob
    /// `-` is standard input.
    let input: String
    /// `-` is standard output.
    let output: String
    /// Shows the progress of the conversion; nil for none.
    var bar: FrameBar?

    /// Converts. Blocks until the output is complete.
    ///
    /// - Returns: The sizes of input and output, in bytes.
    /// - Throws: ``ConvertFailure`` with the same codes as the server's. The output's path is unchanged then.
    func run() throws(ConvertFailure) -> (input: Int, output: Int) {
        let (gif, count) = try readInput()
        let file = try writing { () throws(SystemError) in try OutputFile(output) }
        do throws(ConvertFailure) {
            try convert(gif, count, to: file.descriptor)
            let size = try writing { () throws(SystemError) in
                let size = try file.descriptor.size()
                try file.complete()
                return size
            }
            return (count, size)
        } catch {
            file.discard()
            throw error
        }
    }

    /// Runs `body`, whose errors concern the output.
    private func writing<Value>(_ body: () throws(SystemError) -> Value) throws(ConvertFailure) -> Value {
        try translating(try body(), to: notWritten)
    }

    private func notWritten(_ error: SystemError) -> ConvertFailure {
        ConvertFailure(output == "-" ? "standard output" : output, "written", error)
    }

    private func convert(_ gif: SharedDescriptor, _ count: Int, to output: SharedDescriptor) throws(ConvertFailure) {
        let result: TranscodeResult
        defer { bar?.erase() }
        do throws(SandboxError) {
            result = try supervisor.run(job, input: gif, output: output) { bar?.show($0) }.result
        } catch {
            if let cause = error.fileSystemError { throw notWritten(cause) }
            throw ConvertFailure(Problem(.conversionFailed(error, allowance: job.allowance)), of: input)
        }
        guard job.transcoder.output == .facts else { return }
        let digest = try translating(try SourceDigest(of: gif)) { (error: SystemError) in
            ConvertFailure(input, "read", error)
        }
        do throws(RenditionError) {
            _ = try FactsFile.write(result, of: digest, bytes: count, with: job.transcoder.options.facts, to: output)
        } catch {
            throw ConvertFailure(Problem(error), of: input)
        }
    }

    /// The largest input in bytes, which is the largest `sources.max_bytes`. A larger one would use up the machine's memory.
    private static let maxBytes = 2 << 30

    /// Copies the input into sealed memory, so that it cannot change while it is converted.
    private func readInput() throws(ConvertFailure) -> (SharedDescriptor, Int) {
        let number = input == "-" ? dup(0) : clinux_openat(AT_FDCWD, input, O_RDONLY, 0)
        guard number >= 0 else { throw ConvertFailure(input, "read", .last("open")) }
        let source = SharedDescriptor(OwnedDescriptor(taking: number))
        let tooLarge = SystemError("read", code: EFBIG)
        let (bytes, count): (SharedDescriptor, Int)
        do throws(SystemError) {
            if try source.size() > Self.maxBytes { throw tooLarge }
            var file = try MemoryFile(name: "gifreel-input")
            try DescriptorIO.readToEnd(of: source.number) { chunk throws(SystemError) in
                if file.count + chunk.count > Self.maxBytes { throw tooLarge }
                try file.append(chunk)
            }
            count = file.count
            bytes = try file.seal()
        } catch {
            if error == tooLarge {
                throw ConvertFailure(Problem(.fetchFailed(.tooLarge(limit: Self.maxBytes, declared: nil))), of: input)
            }
            throw ConvertFailure(input, "read", error)
        }
        guard count > 0 else {
            throw ConvertFailure(path: input, code: "not_an_animation", sentence: "The file is empty.")
        }
        return (bytes, count)
    }
}

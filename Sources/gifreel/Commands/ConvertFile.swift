internal import CLinux
internal import Cache
internal import Foundation
internal import Glibc
internal import Media
internal import Renditions
internal import Sandbox
internal import SystemIO
internal import Web

/// Converts one file in a worker process; what a miss does, without the server.
struct ConvertFile: Sendable {
    let supervisor: JobSupervisor
    let job: WorkerJob
    /// `-` is standard input.
    let input: String
    /// `-` is standard output.
    let output: String

    /// What came of it, in bytes.
    struct Sizes: Sendable {
        var gif: Int
        var output: Int
    }

    /// Blocks until it is done.
    ///
    /// - Throws: ``Problem`` with the same codes as the server's; nothing is left under the output's name then but
    ///   what was there before.
    func run() throws(Problem) -> Sizes {
        let (gif, count) = try readInput()
        if output == "-" {
            let number = clinux_memfd_create("gifreel-output")
            guard number >= 0 else { throw Self.failed("memory", .last("memfd_create")) }
            let file = SharedDescriptor(OwnedDescriptor(taking: number))
            let bytes = try convert(gif, count, to: file)
            try copyToStandardOutput(file)
            return Sizes(gif: count, output: bytes)
        }
        let partial = output + ".part-\(getpid())-\(UInt32.random(in: .min ... .max))"
        let number = clinux_openat(AT_FDCWD, partial, O_RDWR | O_CREAT | O_EXCL, 0o644)
        guard number >= 0 else { throw Self.failed(output, .last("open")) }
        let file = SharedDescriptor(OwnedDescriptor(taking: number))
        do throws(Problem) {
            let bytes = try convert(gif, count, to: file)
            guard rename(partial, output) == 0 else { throw Self.failed(output, .last("rename")) }
            return Sizes(gif: count, output: bytes)
        } catch {
            unlink(partial)
            throw error
        }
    }

    /// Returns the output's bytes.
    private func convert(_ gif: SharedDescriptor, _ count: Int, to output: SharedDescriptor) throws(Problem) -> Int {
        let result: TranscodeResult
        do throws(SandboxError) {
            result = try supervisor.run(job, input: gif, output: output).result
        } catch {
            throw Problem(.conversionFailed(error, allowance: job.allowance))
        }
        guard job.transcoder.output == .facts else { return result.bytes }
        let digest: SourceDigest
        do throws(SystemError) {
            digest = try SourceDigest(of: gif)
        } catch {
            throw Self.failed(input, error)
        }
        do throws(RenditionError) {
            return try FactsFile.write(result, of: digest, bytes: count, to: output)
        } catch {
            throw Problem(error)
        }
    }

    /// Copies the input into memory that nobody can change while it is read.
    private func readInput() throws(Problem) -> (SharedDescriptor, Int) {
        let number = input == "-" ? dup(0) : clinux_openat(AT_FDCWD, input, O_RDONLY, 0)
        guard number >= 0 else { throw Self.failed(input, .last("open")) }
        let source = OwnedDescriptor(taking: number)
        do throws(SystemError) {
            var file = try MemoryFile(name: "gifreel-input")
            let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
            defer { chunk.deallocate() }
            while true {
                let count = try retryingOnInterrupt("read") { read(source.number, chunk.baseAddress, chunk.count) }
                if count == 0 { break }
                try file.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
            }
            let count = file.count
            return (try file.seal(), count)
        } catch {
            throw Self.failed(input, error)
        }
    }

    private func copyToStandardOutput(_ file: SharedDescriptor) throws(Problem) {
        do throws(SystemError) {
            let bytes = try file.readAll()
            var done = 0
            while done < bytes.count {
                done += try retryingOnInterrupt("write") {
                    bytes.withUnsafeBytes { write(1, $0.baseAddress.map { $0 + done }, $0.count - done) }
                }
            }
        } catch {
            throw Self.failed("standard output", error)
        }
    }

    private static func failed(_ name: String, _ error: SystemError) -> Problem {
        Problem(500, "file_failed", "\(name): \(error)")
    }
}

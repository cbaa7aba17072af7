import CLinux
import Foundation
import Glibc
@testable import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

/// Zygotes, jobs and files for tests of the sandbox.
enum SandboxFixture {
    /// The path of the built executable.
    static let executable: String = {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        return folder.appendingPathComponent("gifreel").path
    }()

    /// Starts the built executable as a zygote, because the test process has threads and cannot fork one.
    static func zygote() throws -> Zygote {
        try Zygote.spawn(executable: executable)
    }

    static func input(_ bytes: [UInt8]) throws -> SharedDescriptor {
        var file = try MemoryFile(name: "test-input")
        try bytes.withUnsafeBytes { try file.append($0) }
        return try file.seal()
    }

    /// An empty unnamed file.
    static func output() throws -> SharedDescriptor {
        let folder = FileManager.default.temporaryDirectory.path
        let number = open(folder, temporaryFileFlag | O_RDWR, 0o600)
        guard number >= 0 else { throw SystemError.last("open") }
        return SharedDescriptor(OwnedDescriptor(taking: number))
    }

    /// O_TMPFILE, which Swift's Glibc module lacks: O_DIRECTORY and another bit.
    private static let temporaryFileFlag: Int32 = 0o20000000 | 0o200000

    static func job(cpu: Int = 30, memory: Int = 512 << 20, output: Int = 1 << 30, wall: Int? = nil) -> WorkerJob {
        WorkerJob(
            transcoder: Transcoder(limits: MediaLimits(totalPixels: 1 << 40)),
            allowance: WorkerAllowance(cpu: cpu, memory: memory, output: output, wall: wall))
    }

    /// A small GIF that keeps an encoder busy for many seconds: a dot that blinks on a large canvas.
    static let long: [UInt8] = {
        var builder = GIFBuilder(width: 2000, height: 2000)
        for index in 0..<4000 {
            builder.add(GIFBuilder.Frame(width: 1, height: 1, color: UInt8(2 + index % 3))) { $0.delay = 2 }
        }
        return builder.finish()
    }()

    /// Whether the process exists and is not a zombie.
    static func isAlive(_ process: Int32) -> Bool {
        guard let status = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8) else { return false }
        return !status.contains(") Z ")
    }

    /// The processes whose parent is `process`.
    static func children(of process: Int32) -> [Int32] {
        let text = try? String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
        return (text ?? "").split(separator: " ").compactMap { Int32($0) }
    }

    /// The workers of a zygote that have a job.
    static func workers(of zygote: Int32) -> [Int32] { children(of: zygote, named: "gifreel-job") }

    /// The workers of a zygote that wait for a job.
    static func spares(of zygote: Int32) -> [Int32] { children(of: zygote, named: "gifreel-spare") }

    private static func children(of process: Int32, named name: String) -> [Int32] {
        children(of: process).filter { (try? String(contentsOfFile: "/proc/\($0)/comm", encoding: .utf8)) == name + "\n" }
    }

    /// The numbers of a process' open descriptors.
    static func descriptors(of process: Int32) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
    }

    /// A process' environment at its start.
    static func environment(of process: Int32) throws -> String {
        String(decoding: try Data(contentsOf: URL(fileURLWithPath: "/proc/\(process)/environ")), as: UTF8.self)
    }

    /// A line of a process' status.
    static func status(of process: Int32, _ name: String) -> String {
        let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
        return line.drop { $0 != ":" }.dropFirst().trimmingCharacters(in: .whitespaces)
    }

    /// Whether this kernel reports seccomp.
    static let filtersCalls = FileManager.default.fileExists(atPath: "/proc/sys/kernel/seccomp/actions_avail")

    /// The kernel's version of landlock, found without confining this thread.
    static let landlockVersion = Int(clinux_landlock_version())
}

/// All suites with workers. Their tests run one after another, because each blocks a thread until its worker ends, and tests in
/// parallel could block all threads.
@Suite("Workers", .serialized) enum SerialTests {}

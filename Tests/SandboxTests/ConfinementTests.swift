import Foundation
import CLinux
import Glibc
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("The zygote and its workers reach nothing outside", .timeLimit(.minutes(10))) struct ConfinementTests {
        /// Results of system calls: 0 or errno.
        private struct Attempts: Equatable {
            var version: Int32 = 0
            var open: Int32 = 0
            var make: Int32 = 0
            var readProc: Int32 = 0
            var execute: Int32 = 0
            var connect: Int32 = 0
            var signal: Int32 = 0
            var trace: Int32 = 0
        }

        private static func code(_ result: Int32) -> Int32 {
            result >= 0 ? 0 : errno
        }

        private static func attempt() -> Attempts {
            var attempts = Attempts()
            guard clinux_no_new_privileges() == 0, clinux_drop_capabilities() == 0 else { return attempts }
            attempts.version = clinux_deny_files_and_network()
            attempts.open = code(open("/etc/passwd", O_RDONLY))
            attempts.make = code(mkdir("/tmp/gifreel-escaped-\(getpid())", 0o700))
            attempts.readProc = code(open("/proc/self/environ", O_RDONLY))
            var arguments: [UnsafeMutablePointer<CChar>?] = [nil]
            attempts.execute = code(execv("/bin/true", &arguments))
            attempts.signal = code(kill(getppid(), 0))
            attempts.trace = code(clinux_trace(getppid()))
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = in_port_t(9).bigEndian
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            attempts.connect = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    code(connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)))
                }
            }
            close(number)
            return attempts
        }

        @Test(.enabled(if: SandboxFixture.landlockVersion > 0, "this kernel has no landlock"))
        func landlockAloneDeniesFilesProcessesAndConnections() throws {
            let outcome = Mutex(Attempts())
            let thread = try #require(SystemThread.start(name: "confined") { outcome.withLock { $0 = Self.attempt() } })
            thread.join()
            let attempts = outcome.withLock { $0 }
            #expect(
                attempts.open == EACCES && attempts.make == EACCES && attempts.readProc == EACCES && attempts.execute == EACCES)
            #expect(attempts.trace == EPERM)
            if attempts.version >= 4 { #expect(attempts.connect == EACCES) }
            if attempts.version >= 6 { #expect(attempts.signal == EPERM) }
        }

        @Test func theZygoteReportsItsConfinement() throws {
            let confinement = try #require(try SandboxFixture.zygote().confinement())
            #expect(
                confinement
                    == Confinement(filtersCalls: SandboxFixture.filtersCalls, landlockVersion: SandboxFixture.landlockVersion))
        }

        @Test func theZygoteHasOnlyItsOwnDescriptorsAndNoSecrets() throws {
            setenv("GIFREEL_TEST_SECRET", "do not tell", 1)
            defer { unsetenv("GIFREEL_TEST_SECRET") }
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            // Twice the null device, standard error, control socket, output of the warm-up, signals, the spare worker's socket, and
            // the score for lack of memory.
            try blockUntil("eight descriptors") { (try? SandboxFixture.descriptors(of: zygote.process))?.count == 8 }
            #expect(try !SandboxFixture.environment(of: zygote.process).contains("GIFREEL_TEST_SECRET"))
            #expect(SandboxFixture.status(of: zygote.process, "CapPrm").allSatisfy { $0 == "0" })
            #expect(SandboxFixture.status(of: zygote.process, "NoNewPrivs") == "1")
        }

        @Test func theKernelEndsWorkersFirstForLackOfMemoryAndTheServerLast() throws {
            func score(_ process: Int32) throws -> Int {
                let text = try String(contentsOfFile: "/proc/\(process)/oom_score_adj", encoding: .utf8)
                return try #require(Int(text.trimmingCharacters(in: .whitespacesAndNewlines)))
            }
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            try blockUntil("a spare worker") { !SandboxFixture.spares(of: zygote.process).isEmpty }
            let own = try score(getpid())
            try blockUntil("the zygote's score") { try score(zygote.process) == min(1000, own + 500) }
            for worker in SandboxFixture.spares(of: zygote.process) { #expect(try score(worker) == 1000) }
        }

        @Test func theZygoteAndItsSpareWorkerLeaveNoCore() throws {
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            try blockUntil("a spare worker") { !SandboxFixture.spares(of: zygote.process).isEmpty }
            for process in [zygote.process] + SandboxFixture.spares(of: zygote.process) {
                let limits = try String(contentsOfFile: "/proc/\(process)/limits", encoding: .utf8)
                let words = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") })
                    .split(separator: " ")
                // 1 also keeps the kernel from starting a handler. A hard limit of 0 cannot be raised.
                #expect(words[4] == words[5] && ["0", "1"].contains(words[4]), "\(words)")
            }
        }

        @Test func aWorkerHasNoDescriptorsButItsOutputAndItsChannel() throws {
            let zygote = try SandboxFixture.zygote()
            var job = SandboxFixture.job(wall: 60)
            job.fault = .hang
            let (input, output) = (try SandboxFixture.input([1]), try SandboxFixture.output())
            let cancellation = JobCancellation()
            let hanging = job
            let thread = SystemThread.start(name: "job") {
                _ = try? JobSupervisor(zygote: zygote).run(hanging, input: input, output: output, cancellation: cancellation)
            }
            var names: [String] = []
            try? blockUntil("two descriptors") {
                guard let child = SandboxFixture.workers(of: zygote.process).first else { return false }
                names = ((try? SandboxFixture.descriptors(of: child)) ?? []).sorted()
                return names == ["4", "5"]
            }
            #expect(names == ["4", "5"])
            cancellation.cancel()
            thread?.join()
        }

        @Test(arguments: [
            (Confinement(filtersCalls: true, landlockVersion: 3), []),
            (Confinement(filtersCalls: false, landlockVersion: 3), ["seccomp"]),
            (Confinement(filtersCalls: false, landlockVersion: 0), ["seccomp", "landlock"]),
        ])
        func missingFeaturesAreNamed(_ confinement: Confinement, _ missing: [String]) {
            #expect(confinement.missing == missing)
        }
    }
}

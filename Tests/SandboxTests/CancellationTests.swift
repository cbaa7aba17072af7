import Foundation
import Glibc
import Media
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("Cancelled jobs end, and jobs survive the loss of their zygote", .timeLimit(.minutes(10))) struct CancellationTests {
        private func pool(_ zygote: Zygote, workers: Int = 1) -> WorkerPool {
            WorkerPool(zygote: zygote, configuration: WorkerPoolConfiguration(workers: workers, queue: 64, threadsAlone: 1))
        }

        private func run(_ pool: WorkerPool, _ gif: [UInt8], fault: WorkerFault? = nil) async throws -> SandboxError? {
            let input = try SandboxFixture.input(gif)
            let output = try SandboxFixture.output()
            var job = SandboxFixture.job()
            job.fault = fault
            do throws(SandboxError) {
                _ = try await pool.run(job, input: input, output: output)
                return nil
            } catch {
                return error
            }
        }

        @Test func cancellingEndsTheRunningWorker() async throws {
            let zygote = try SandboxFixture.zygote()
            let pool = pool(zygote)
            let running = Task { try await run(pool, SandboxFixture.long) }
            try await waitUntil("a worker") { !SandboxFixture.workers(of: zygote.process).isEmpty }
            running.cancel()
            #expect(try await running.value == .cancelled)
            #expect(SandboxFixture.workers(of: zygote.process).isEmpty)
            #expect(pool.load == (0, 0))
            #expect(pool.statistics.jobs == [.cancelled: 1])
            #expect(pool.statistics.cpuMicroseconds > 0)
            #expect(try await run(pool, GIFBuilder.animation()) == nil)
            pool.close()
        }

        @Test func jobsOfAZygoteThatDiesAreStartedAgain() async throws {
            let zygote = try SandboxFixture.zygote()
            let pool = pool(zygote, workers: 2)
            // Takes about a second, which is long enough to kill the zygote meanwhile.
            let gif = GIFBuilder.noise(frames: 40, width: 300, height: 300)
            try await withThrowingTaskGroup(of: SandboxError?.self) { group in
                for _ in 0..<2 { group.addTask { try await run(pool, gif) } }
                try await waitUntil("two workers") { SandboxFixture.workers(of: zygote.process).count == 2 }
                for _ in 0..<6 { group.addTask { try await run(pool, GIFBuilder.animation(frames: 2, width: 16, height: 16)) } }
                kill(zygote.process, SIGKILL)
                for try await error in group { #expect(error == nil) }
            }
            #expect(zygote.replacements == 1)
            #expect(pool.statistics.replacedZygotes == 1 && pool.statistics.jobs == [.finished: 8])
            pool.close()
        }

        @Test func aZygoteThatDoesNotRespondIsReplaced() throws {
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            kill(zygote.process, SIGSTOP)
            let supervisor = JobSupervisor(zygote: zygote)
            let input = try SandboxFixture.input(GIFBuilder.animation())
            #expect(throws: SandboxError.zygoteUnresponsive) {
                try supervisor.run(SandboxFixture.job(wall: 1), input: input, output: SandboxFixture.output())
            }
            #expect(zygote.replacements == 1)
            #expect(try supervisor.run(SandboxFixture.job(), input: input, output: SandboxFixture.output()).result.frames == 5)
        }

        @Test func anIdleZygoteThatDiesIsReportedAndReplaced() throws {
            let zygote = try SandboxFixture.zygote()
            let losses = Mutex<[ZygoteLoss]>([])
            zygote.onLoss { loss in losses.withLock { $0.append(loss) } }
            for round in 1...2 {
                let process = zygote.process
                try Self.killWhenGrown(process)
                // The loss is reported after the replacement.
                try blockUntil("the report of the loss") { losses.withLock { $0.count } == round }
                #expect(zygote.replacements == round)
                let loss = try #require(losses.withLock { $0.last })
                #expect(loss.process == process && loss.signal == SIGKILL)
                #expect(try loss.replacement.get() == zygote.process)
            }
            let input = try SandboxFixture.input(GIFBuilder.animation())
            let outcome = try JobSupervisor(zygote: zygote).run(
                SandboxFixture.job(), input: input, output: SandboxFixture.output())
            #expect(outcome.result.frames == 5)
            #expect(losses.withLock { $0.count } == 2)
        }

        @Test func aZygoteThatAJobStartedAfterAFailedReplacementIsWatched() throws {
            let folder = try ScratchDirectory()
            let link = folder.path("gifreel")
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: SandboxFixture.executable)
            let zygote = try Zygote.spawn(executable: link)
            let losses = Mutex<[ZygoteLoss]>([])
            zygote.onLoss { loss in losses.withLock { $0.append(loss) } }
            try FileManager.default.removeItem(atPath: link)
            try Self.killWhenGrown(zygote.process)
            try blockUntil("the report of the loss") { losses.withLock { $0.count } == 1 }
            #expect(throws: SystemError.self) { try losses.withLock { $0[0] }.replacement.get() }
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: SandboxFixture.executable)
            let input = try SandboxFixture.input(GIFBuilder.animation())
            let outcome = try JobSupervisor(zygote: zygote).run(
                SandboxFixture.job(), input: input, output: SandboxFixture.output())
            #expect(outcome.result.frames == 5 && zygote.replacements == 1)
            let second = zygote.process
            try Self.killWhenGrown(second)
            try blockUntil("the report of another loss") { losses.withLock { $0.count } == 2 }
            #expect(losses.withLock { $0[1].process } == second && zygote.replacements == 2)
        }

        @Test func aFrozenZygoteIsKilledByAStop() throws {
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            let process = zygote.process
            kill(process, SIGSTOP)
            try blockUntil("the zygote to be frozen") { SandboxFixture.status(of: process, "State").hasPrefix("T") }
            zygote.stop()
            #expect(!FileManager.default.fileExists(atPath: "/proc/\(process)"), "left in the process table")
        }

        @Test func aStoppedZygoteIsNotReplaced() throws {
            let zygote = try SandboxFixture.zygote()
            zygote.onLoss { Issue.record("\($0)") }
            zygote.stop()
            let input = try SandboxFixture.input(GIFBuilder.animation())
            #expect(throws: SandboxError.unavailable(SystemError("zygote", code: ESHUTDOWN))) {
                try JobSupervisor(zygote: zygote).run(SandboxFixture.job(), input: input, output: SandboxFixture.output())
            }
        }

        /// Kills a zygote. One that dies within its first second is not replaced before the next job.
        private static func killWhenGrown(_ process: Int32) throws {
            try blockUntil("the age of the zygote") { age(of: process) >= 2 }
            kill(process, SIGKILL)
        }

        /// Seconds since a process started.
        private static func age(of process: Int32) -> Double {
            let stat = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
            let uptime = (try? String(contentsOfFile: "/proc/uptime", encoding: .utf8)) ?? ""
            // The 22nd field, in clock ticks since the machine started (proc_pid_stat(5)).
            let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
            guard fields.count > 19, let started = Double(fields[19]),
                let now = uptime.split(separator: " ").first.flatMap({ Double($0) })
            else { return 0 }
            return now - started / Double(sysconf(Int32(_SC_CLK_TCK)))
        }
    }
}

import CLinux
import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("A spare worker is forked and warm before its job") struct SpareWorkerTests {
        private func run(_ zygote: Zygote, _ gif: [UInt8] = GIFBuilder.animation()) throws -> JobSupervisor.Outcome {
            try JobSupervisor(zygote: zygote).run(
                SandboxFixture.job(), input: SandboxFixture.input(gif), output: SandboxFixture.output())
        }

        private func spare(of zygote: Zygote) throws -> Int32 {
            var found: [Int32] = []
            try blockUntil("one spare worker, and there are \(found)") {
                found = SandboxFixture.spares(of: zygote.process)
                return found.count == 1
            }
            return found[0]
        }

        @Test func theJobGoesToTheSpareWorkerAndAnotherIsForked() throws {
            let zygote = try SandboxFixture.zygote()
            let first = try spare(of: zygote)
            _ = try run(zygote)
            try blockUntil("the end of the process") { !SandboxFixture.isAlive(first) }
            #expect(try spare(of: zygote) != first)
        }

        @Test func aSpareWorkerIsConfinedBeforeItsJob() throws {
            let zygote = try SandboxFixture.zygote()
            let waiting = try spare(of: zygote)
            #expect(SandboxFixture.status(of: waiting, "NoNewPrivs") == "1")
            #expect(SandboxFixture.status(of: waiting, "Seccomp") == (SandboxFixture.filtersCalls ? "2" : "0"))
            try blockUntil("four descriptors") {
                (try? SandboxFixture.descriptors(of: waiting))?.sorted() == ["0", "1", "2", "3"]
            }
        }

        @Test func aJobSucceedsAfterTheSpareWorkerHasEnded() throws {
            let zygote = try SandboxFixture.zygote()
            for _ in 0..<5 {
                let waiting = try spare(of: zygote)
                kill(waiting, SIGKILL)
                try blockUntil("the end of the process") { !SandboxFixture.isAlive(waiting) }
                // The zygote forks no other spare worker before the next job.
                try blockUntil("no spare worker") { SandboxFixture.spares(of: zygote.process).isEmpty }
                #expect(try run(zygote).result.frames == 5)
            }
            #expect(zygote.replacements == 0)
        }

        @Test func aSpareWorkerEndsWithItsZygote() throws {
            for signal in [SIGKILL, SIGTERM] {
                let zygote = try SandboxFixture.zygote()
                let waiting = try spare(of: zygote)
                // The zygote ignores SIGTERM; closing its socket stops it.
                if signal == SIGKILL { kill(zygote.process, signal) } else { zygote.stop() }
                try blockUntil("the end of the process") { !SandboxFixture.isAlive(waiting) }
            }
        }

        @Test func theProcessorTimeOfWarmingUpDoesNotCountForTheJob() throws {
            // A busy machine may slow a job down. If warming up counted, no job could take less time than that.
            let isShorter = try (0..<10).contains { _ in
                let zygote = try SandboxFixture.zygote()
                let waiting = try spare(of: zygote)
                var before = 0
                try blockUntil("the end of warming up") {
                    before = Int(clinux_cpu_time(waiting))
                    return (try? SandboxFixture.descriptors(of: waiting))?.count == 4
                }
                // Facts need no encoder.
                var job = SandboxFixture.job()
                job.transcoder.output = .facts
                let outcome = try JobSupervisor(zygote: zygote).run(
                    job, input: SandboxFixture.input(GIFBuilder.animation(frames: 2)), output: SandboxFixture.output())
                #expect(outcome.exit.cpuMicroseconds > 0)
                return outcome.exit.cpuMicroseconds < before
            }
            #expect(isShorter)
        }
    }
}

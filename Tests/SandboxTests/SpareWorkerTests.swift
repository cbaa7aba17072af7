import CLinux
import Foundation
import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    /// A worker is forked and warm before its job comes.
    @Suite struct SpareWorkerTests {
        private func run(_ zygote: Zygote, _ gif: [UInt8] = GIFBuilder.animation()) throws -> JobSupervisor.Outcome {
            try JobSupervisor(zygote: zygote).run(
                SandboxFixture.job(), input: SandboxFixture.input(gif), output: SandboxFixture.output())
        }

        private func spare(of zygote: Zygote) throws -> Int32 {
            var found: [Int32] = []
            try #require(
                SandboxFixture.eventually {
                    found = SandboxFixture.spares(of: zygote.process)
                    return found.count == 1
                }, "\(found)")
            return found[0]
        }

        @Test func theJobGoesToTheWorkerThatWaitsAndAnotherTakesItsPlace() throws {
            let zygote = try SandboxFixture.zygote()
            let first = try spare(of: zygote)
            _ = try run(zygote)
            #expect(SandboxFixture.eventually { !SandboxFixture.isAlive(first) })
            #expect(try spare(of: zygote) != first)
        }

        @Test func itIsConfinedWhileItWaits() throws {
            let zygote = try SandboxFixture.zygote()
            let waiting = try spare(of: zygote)
            #expect(SandboxFixture.status(of: waiting, "NoNewPrivs") == "1")
            #expect(SandboxFixture.status(of: waiting, "Seccomp") == (SandboxFixture.filtersCalls ? "2" : "0"))
            #expect(
                SandboxFixture.eventually { (try? SandboxFixture.descriptors(of: waiting))?.sorted() == ["0", "1", "2", "3"] })
        }

        @Test func oneThatEndsWhileItWaitsIsMissedByNobody() throws {
            let zygote = try SandboxFixture.zygote()
            for _ in 0..<5 {
                let waiting = try spare(of: zygote)
                kill(waiting, SIGKILL)
                #expect(SandboxFixture.eventually { !SandboxFixture.isAlive(waiting) })
                #expect(
                    SandboxFixture.eventually { SandboxFixture.spares(of: zygote.process).isEmpty },
                    "or it would be forked for ever")
                #expect(try run(zygote).result.frames == 5)
            }
            #expect(zygote.replacements == 0)
        }

        @Test func itEndsWithItsZygote() throws {
            for signal in [SIGKILL, SIGTERM] {
                let zygote = try SandboxFixture.zygote()
                let waiting = try spare(of: zygote)
                // SIGTERM it ignores; stopping is said over its socket.
                if signal == SIGKILL { kill(zygote.process, signal) } else { zygote.stop() }
                #expect(SandboxFixture.eventually { !SandboxFixture.isAlive(waiting) })
            }
        }

        @Test func warmingUpIsNotOnTheBillOfTheJob() throws {
            let zygote = try SandboxFixture.zygote()
            let waiting = try spare(of: zygote)
            var before = 0
            #expect(
                SandboxFixture.eventually {
                    before = Int(clinux_cpu_time(waiting))
                    return (try? SandboxFixture.descriptors(of: waiting))?.count == 4
                })
            // Facts need no encoder.
            var job = SandboxFixture.job()
            job.transcoder.output = .facts
            let outcome = try JobSupervisor(zygote: zygote).run(
                job, input: SandboxFixture.input(GIFBuilder.animation(frames: 2)), output: SandboxFixture.output())
            #expect(outcome.exit.cpuMicroseconds > 0)
            #expect(outcome.exit.cpuMicroseconds < before)
        }
    }
}

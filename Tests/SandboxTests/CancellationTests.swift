import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    /// Jobs that nobody wants any more, and zygotes that die under jobs.
    @Suite(.timeLimit(.minutes(2))) struct CancellationTests {
        private func pool(_ zygote: Zygote, workers: Int = 1) -> WorkerPool {
            WorkerPool(zygote: zygote, configuration: WorkerPoolConfiguration(workers: workers, threadsAlone: 1))
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

        @Test func cancellingEndsTheWorkerThatRuns() async throws {
            let zygote = try SandboxFixture.zygote()
            let pool = pool(zygote)
            let running = Task { try await run(pool, SandboxFixture.long) }
            while SandboxFixture.workers(of: zygote.process).isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            running.cancel()
            #expect(try await running.value == .cancelled)
            #expect(SandboxFixture.workers(of: zygote.process).isEmpty)
            #expect(pool.load == (0, 0))
            #expect(pool.statistics.jobs == [.cancelled: 1])
            #expect(pool.statistics.cpuMicroseconds > 0)
            #expect(try await run(pool, GIFBuilder.animation()) == nil)
            pool.close()
        }

        @Test func jobsOfAZygoteThatDiesAreBegunAgain() async throws {
            let zygote = try SandboxFixture.zygote()
            let pool = pool(zygote, workers: 2)
            // Busy for a second or so, which is long enough to kill the zygote meanwhile.
            let gif = GIFBuilder.noise(frames: 40, width: 300, height: 300)
            try await withThrowingTaskGroup(of: SandboxError?.self) { group in
                for _ in 0..<2 { group.addTask { try await run(pool, gif) } }
                while SandboxFixture.workers(of: zygote.process).count < 2 { try await Task.sleep(for: .milliseconds(1)) }
                for _ in 0..<6 { group.addTask { try await run(pool, GIFBuilder.animation(frames: 2, width: 16, height: 16)) } }
                kill(zygote.process, SIGKILL)
                for try await error in group { #expect(error == nil) }
            }
            #expect(zygote.replacements == 1)
            #expect(pool.statistics.replacedZygotes == 1 && pool.statistics.jobs == [.finished: 8])
            pool.close()
        }

        @Test func aZygoteThatDoesNotAnswerIsReplaced() throws {
            let zygote = try SandboxFixture.zygote()
            _ = zygote.confinement()
            kill(zygote.process, SIGSTOP)
            let supervisor = JobSupervisor(zygote: zygote)
            let input = try SandboxFixture.input(GIFBuilder.animation())
            #expect(throws: SandboxError.timeout) {
                try supervisor.run(SandboxFixture.job(wall: 1), input: input, output: SandboxFixture.output())
            }
            #expect(zygote.replacements == 1)
            #expect(try supervisor.run(SandboxFixture.job(), input: input, output: SandboxFixture.output()).result.frames == 5)
        }
    }
}

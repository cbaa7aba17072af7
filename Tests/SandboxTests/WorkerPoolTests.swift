import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

@Suite(.timeLimit(.minutes(2))) struct WorkerPoolTests {
    private func pool(workers: Int = 1, queue: Int = 4, queueTimeout: Duration = .seconds(60)) throws -> WorkerPool {
        WorkerPool(
            zygote: try SandboxFixture.zygote(),
            configuration: WorkerPoolConfiguration(workers: workers, queue: queue, queueTimeout: queueTimeout, threadsAlone: 1))
    }

    /// Runs a job, and returns its error instead of throwing it.
    private func error(_ pool: WorkerPool, _ gif: [UInt8], wall: Int? = nil) async throws -> SandboxError? {
        let input = try SandboxFixture.input(gif)
        let output = try SandboxFixture.output()
        do throws(SandboxError) {
            _ = try await pool.run(SandboxFixture.job(wall: wall), input: input, output: output)
            return nil
        } catch {
            return error
        }
    }

    private func waitUntil(_ condition: () -> Bool) async throws {
        while !condition() { try await Task.sleep(for: .milliseconds(2)) }
    }

    @Test func jobsMoreThanWorkersAllGetDone() async throws {
        let pool = try pool(workers: 2, queue: 20)
        let errors = try await withThrowingTaskGroup(of: SandboxError?.self) { group in
            for _ in 0..<12 { group.addTask { try await error(pool, GIFBuilder.animation(frames: 2, width: 16, height: 16)) } }
            return try await group.reduce(into: [SandboxError?]()) { $0.append($1) }
        }
        #expect(errors.count == 12 && errors.allSatisfy { $0 == nil })
        #expect(pool.load == (0, 0))
        pool.close()
    }

    @Test func aFullQueueRefusesAtOnce() async throws {
        let pool = try pool(queue: 1)
        let running = Task { try await error(pool, SandboxFixture.long, wall: 5) }
        try await waitUntil { pool.load.running == 1 }
        let waiting = Task { try await error(pool, GIFBuilder.animation()) }
        try await waitUntil { pool.load.waiting == 1 }
        let began = ContinuousClock.now
        #expect(try await error(pool, GIFBuilder.animation()) == .queueFull)
        #expect(began.duration(to: .now) < .seconds(1))
        #expect(try await running.value == .timeout)
        #expect(try await waiting.value == nil)
        pool.close()
    }

    @Test func aJobThatWaitsTooLongIsGivenUp() async throws {
        let pool = try pool(queueTimeout: .milliseconds(100))
        let running = Task { try await error(pool, SandboxFixture.long, wall: 3) }
        try await waitUntil { pool.load.running == 1 }
        #expect(try await error(pool, GIFBuilder.animation()) == .queueTimeout)
        #expect(try await running.value == .timeout)
        pool.close()
    }

    @Test func aCancelledJobLeavesTheQueue() async throws {
        let pool = try pool()
        let running = Task { try await error(pool, SandboxFixture.long, wall: 3) }
        try await waitUntil { pool.load.running == 1 }
        let waiting = Task { try await error(pool, GIFBuilder.animation()) }
        try await waitUntil { pool.load.waiting == 1 }
        waiting.cancel()
        #expect(try await waiting.value == .cancelled)
        #expect(pool.load.waiting == 0)
        #expect(try await running.value == .timeout)
        pool.close()
    }
}

import Glibc
import Media
import SystemIO
import TestSupport
import Testing

@testable import Sandbox

extension SerialTests {
    @Suite("The pool runs the most urgent jobs first and bounds its queue", .timeLimit(.minutes(10))) struct WorkerPoolTests {
        private func pool(workers: Int = 1, queue: Int = 4, positionAge: Duration = .zero) throws -> WorkerPool {
            var configuration = WorkerPoolConfiguration(workers: workers, queue: queue, threadsAlone: 1)
            configuration.positionAge = positionAge
            return WorkerPool(zygote: try SandboxFixture.zygote(), configuration: configuration)
        }

        /// Runs a job and returns its error.
        private func error(_ pool: WorkerPool, _ gif: [UInt8], _ turn: JobTurn = JobTurn()) async throws -> SandboxError? {
            let input = try SandboxFixture.input(gif)
            let output = try SandboxFixture.output()
            do throws(SandboxError) {
                _ = try await pool.run(SandboxFixture.job(), turn: turn, input: input, output: output)
                return nil
            } catch {
                return error
            }
        }

        /// The time of the last write to the file, in nanoseconds.
        private static func modified(_ file: SharedDescriptor) -> Int {
            var status = stat()
            return fstat(file.number, &status) == 0 ? status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec : -1
        }

        @Test func theTimeOfAWorkerCountsHoweverItsJobEnds() async throws {
            let pool = try pool()
            let (made, rejected) = (JobTurn(), JobTurn())
            #expect(try await error(pool, GIFBuilder.animation(), made) == nil)
            #expect(try await error(pool, Array(GIFBuilder.animation().prefix(20)), rejected) != nil)
            #expect(made.cpu > .zero && rejected.cpu > .zero)
            #expect(pool.statistics.cpuMicroseconds == Int((made.cpu + rejected.cpu) / .microseconds(1)))
            pool.close()
        }

        @Test func moreJobsThanWorkersAllFinish() async throws {
            let pool = try pool(workers: 2, queue: 20)
            let errors = try await withThrowingTaskGroup(of: SandboxError?.self) { group in
                for _ in 0..<12 {
                    group.addTask { try await error(pool, GIFBuilder.animation(frames: 2, width: 16, height: 16)) }
                }
                return try await group.reduce(into: [SandboxError?]()) { $0.append($1) }
            }
            #expect(errors.count == 12 && errors.allSatisfy { $0 == nil })
            #expect(pool.load == (0, 0))
            pool.close()
        }

        @Test func aFullQueueRefusesAtOnce() async throws {
            let pool = try pool(queue: 1)
            let running = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.running == 1 }
            let waiting = Task { try await error(pool, GIFBuilder.animation()) }
            try await waitUntil("the load of the pool") { pool.load.waiting == 1 }
            #expect(try await error(pool, GIFBuilder.animation()) == .queueFull)
            running.cancel()
            #expect(try await running.value == .cancelled)
            #expect(try await waiting.value == nil)
            pool.close()
        }

        /// Who holds the two workers, and whether a job of the third client begins beside them.
        @Test(arguments: [
            (holders: [1, 1], begins: true), ([nil, nil], true), ([1, 2], false), ([1, 3], false), ([1, nil], false),
        ]) func nobodyCanHoldAllWorkers(_ holders: [Int?], _ begins: Bool) async throws {
            let pool = try pool(workers: 2)
            func run(_ gif: [UInt8], for client: Int?) throws -> Task<Bool, any Error> {
                let turn = client.map { JobTurn(for: Self.client(UInt32($0))) } ?? JobTurn(.prewarm)
                let (input, output) = (try SandboxFixture.input(gif), try SandboxFixture.output())
                return Task { (try? await pool.run(SandboxFixture.job(), turn: turn, input: input, output: output)) != nil }
            }
            let held = try holders.map { try run(SandboxFixture.long, for: $0) }
            try await waitUntil("the workers to be taken") { pool.load.running == 2 }
            let others = try holders.map { try run(GIFBuilder.animation(), for: $0) }
            try await waitUntil("the jobs of those who have a worker to wait") { pool.load.waiting == 2 }
            let third = try run(GIFBuilder.animation(), for: 3)
            if begins {
                #expect(try await third.value)
                // The worker ends with the job.
                try await waitUntil("the end of the third worker") { pool.load.running == 2 }
            } else {
                try await waitUntil("the job to wait") { pool.load.waiting == 3 }
            }
            #expect(pool.load == (2, begins ? 2 : 3))
            for task in held { task.cancel() }
            for task in others + [third] { #expect(try await task.value) }
            pool.close()
        }

        @Test func moreUrgentJobsRunFirstAndUrgencyMayRise() async throws {
            let pool = try pool(queue: 8)
            let names = ["prewarm", "raised", "visitor 1", "visitor 2"]
            let turns = [JobTurn(.prewarm), JobTurn(.prewarm), JobTurn(.visitor), JobTurn(.visitor)]
            let outputs = try turns.map { _ in try SandboxFixture.output() }
            let input = try SandboxFixture.input(GIFBuilder.animation(frames: 12, width: 60, height: 60))
            let running = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.running == 1 }
            var tasks: [Task<Void, any Error>] = []
            for (turn, output) in zip(turns, outputs) {
                let waiting = pool.load.waiting
                tasks.append(
                    Task {
                        _ = try await pool.run(SandboxFixture.job(), turn: turn, input: input, output: output)
                    })
                try await waitUntil("the load of the pool") { pool.load.waiting == waiting + 1 }
            }
            turns[1].raise(to: Urgency(level: 1))
            turns[2].raise(to: .prewarm)
            #expect(turns.map(\.urgency.level) == [7, 1, 3, 3])
            #expect(!turns.contains { $0.hasBegun })
            #expect(turns.map { pool.position(of: $0) } == [4, 1, 2, 3])
            running.cancel()
            for task in tasks { try await task.value }
            // A single worker wrote the files in order.
            let written = zip(outputs, names).map { (Self.modified($0), $1) }.sorted { $0.0 < $1.0 }
            #expect(written.map(\.1) == ["raised", "visitor 1", "visitor 2", "prewarm"])
            #expect(turns.allSatisfy { $0.hasBegun && pool.position(of: $0) == nil })
            _ = try await running.value
            pool.close()
        }

        /// Any number may come from a worker; the queue passes it on to the callers of the job.
        @Test func clientsTakeTurnsWhateverTheirUrgency() async throws {
            let pool = try pool(queue: 8)
            let input = try SandboxFixture.input(GIFBuilder.animation())
            let (greedy, visitor) = (Self.client(1), Self.client(2))
            let turns =
                (0..<4).map { _ in JobTurn(Urgency(level: 0), for: greedy) } + [JobTurn(Urgency(level: 7), for: visitor)]
            let outputs = try turns.map { _ in try SandboxFixture.output() }
            // Each has a worker, so that none may begin beside them.
            let blockers = [greedy, visitor].map { client in
                Task { try await error(pool, SandboxFixture.long, JobTurn(for: client)) }
            }
            try await waitUntil("the workers to be busy") { pool.load.running == 2 }
            await withTaskGroup(of: Void.self) { group in
                for (index, (turn, output)) in zip(turns, outputs).enumerated() {
                    group.addTask {
                        _ = try? await pool.run(SandboxFixture.job(), turn: turn, input: input, output: output)
                    }
                    try? await waitUntil("the job to be queued") { pool.load.waiting == index + 1 }
                }
                #expect(turns.map { pool.position(of: $0) } == [1, 3, 4, 5, 2])
                for blocker in blockers { blocker.cancel() }
                await group.waitForAll()
            }
            for blocker in blockers { #expect(try await blocker.value == .cancelled) }
            pool.close()
        }

        @Test func positionsInALongQueueAreFoundOnceForAllWhoAsk() async throws {
            let pool = try pool(queue: 600, positionAge: .seconds(600))
            let (input, output) = (try SandboxFixture.input(GIFBuilder.animation()), try SandboxFixture.output())
            let turns = (0..<600).map { JobTurn(for: Self.client($0)) }
            let blockers = [Self.client(1000), Self.client(1001)].map { client in
                Task { try await error(pool, SandboxFixture.long, JobTurn(for: client)) }
            }
            try await waitUntil("the workers to be busy") { pool.load.running == 2 }
            await withTaskGroup(of: Void.self) { group in
                for turn in turns {
                    group.addTask { _ = try? await pool.run(SandboxFixture.job(), turn: turn, input: input, output: output) }
                }
                try? await waitUntil("the queue to be full") { pool.load.waiting == 600 }
                let start = ContinuousClock.now
                let positions = (0..<100).map { _ in turns.compactMap { pool.position(of: $0) } }
                // A minute if each request orders the queue.
                #expect(.now - start < .seconds(10))
                #expect(positions.allSatisfy { $0.sorted() == Array(1...128) })
                pool.cancelAll()
                await group.waitForAll()
            }
            for blocker in blockers { #expect(try await blocker.value == .cancelled) }
            pool.close()
        }

        private static func client(_ number: UInt32) -> ClientNetwork { ClientNetwork(.v4(number)) }

        @Test func theProgressOfAJobNeverFalls() {
            let turn = JobTurn()
            #expect(turn.progress == nil)
            for done in [1, 5, 3, 5, 2] { turn.report(FrameProgress(done: done, total: 6)) }
            #expect(turn.progress == FrameProgress(done: 5, total: 6))
            turn.report(FrameProgress(done: 6, total: 6))
            #expect(turn.progress == FrameProgress(done: 6, total: 6))
        }

        @Test func aCancelledJobLeavesTheQueue() async throws {
            let pool = try pool()
            let running = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.running == 1 }
            let waiting = Task { try await error(pool, GIFBuilder.animation()) }
            try await waitUntil("the load of the pool") { pool.load.waiting == 1 }
            waiting.cancel()
            #expect(try await waiting.value == .cancelled)
            #expect(pool.load.waiting == 0)
            running.cancel()
            #expect(try await running.value == .cancelled)
            pool.close()
        }

        @Test func cancelledJobsAreRemovedFromTheQueue() async throws {
            let pool = try pool(queue: 2)
            let running = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.running == 1 }
            for _ in 0..<6 {
                let dropped = Task { try await error(pool, GIFBuilder.animation()) }
                try await waitUntil("the load of the pool") { pool.load.waiting == 1 }
                dropped.cancel()
                #expect(try await dropped.value == .cancelled)
            }
            let next = Task { try await error(pool, GIFBuilder.animation()) }
            try await waitUntil("the load of the pool") { pool.load.waiting == 1 }
            running.cancel()
            #expect(try await running.value == .cancelled)
            #expect(try await next.value == nil)
            pool.close()
        }

        /// Without the cancellation, ``WorkerPool/close()`` would wait for both jobs.
        @Test func aPoolWhoseJobsAreCancelledEndsThemAndRefusesLaterOnes() async throws {
            let pool = try pool()
            let running = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.running == 1 }
            let waiting = Task { try await error(pool, SandboxFixture.long) }
            try await waitUntil("the load of the pool") { pool.load.waiting == 1 }
            pool.cancelAll()
            #expect(try await error(pool, GIFBuilder.animation()) == .cancelled)
            pool.close()
            #expect(pool.load == (0, 0))
            #expect(try await running.value == .cancelled)
            #expect(try await waiting.value == .cancelled)
        }

        @Test func aClosedPoolRefusesJobs() async throws {
            let pool = try pool()
            #expect(try await error(pool, GIFBuilder.animation()) == nil)
            pool.close()
            #expect(try await error(pool, GIFBuilder.animation()) == .queueFull)
            #expect(pool.load == (0, 0))
        }
    }
}

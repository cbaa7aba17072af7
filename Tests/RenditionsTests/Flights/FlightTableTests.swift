import Foundation
import Sandbox
import Synchronization
import Testing

@testable import Renditions

@Suite("Single flight: callers share work per key", .timeLimit(.minutes(2))) struct FlightTableTests {
    private typealias Table = FlightTable<String, Int>

    private func table(patience: Duration = .seconds(600), lifetime: Duration = .seconds(600)) -> Table {
        Table(patience: patience, lifetime: lifetime)
    }

    /// Counts how often the work was begun.
    private final class Runs: Sendable {
        private let value = Mutex(0)
        var count: Int { value.withLock { $0 } }
        func next() -> Int {
            value.withLock { value in
                value += 1
                return value
            }
        }
    }

    @Test func allWhoComeMeanwhileShareOneWork() async throws {
        let (table, gate, runs) = (table(), AsyncGate(), Runs())
        let landings = await withTaskGroup(of: Table.Landing.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    await table.outcome(of: "a") { _ in
                        await gate.pass()
                        return runs.next()
                    }
                }
            }
            #expect(await eventually { table.waiterCount == 100 })
            gate.open()
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(runs.count == 1 && landings.allSatisfy { $0.value == 1 })
        #expect(landings.filter { $0.joined == false }.count == 1)
        #expect(table.count == 0)
        // The key is free again.
        #expect(await table.outcome(of: "a") { _ in runs.next() }.value == 2)
    }

    @Test func workThatNobodyWaitsForAndNobodyDoesIsCancelled() async throws {
        let (table, runs, ended) = (table(), Runs(), AsyncGate())
        let work: Table.Work = { _ in
            let number = runs.next()
            if number == 1 {
                while !Task.isCancelled { await Task.yield() }
                await ended.pass()
            }
            return number
        }
        let caller = Task { await table.outcome(of: "a", work) }
        #expect(await eventually { runs.count == 1 })
        caller.cancel()
        #expect(await caller.value.isCancelled)
        #expect(await eventually { ended.count == 1 })
        #expect(table.count == 0)
        // Who comes now gets a new work, not the cancelled one.
        #expect(await table.outcome(of: "a", work).value == 2)
        ended.open()
    }

    @Test func workThatAWorkerHasGoesOnAndIsJoined() async throws {
        let (table, gate, runs) = (table(), AsyncGate(), Runs())
        let work: Table.Work = { flight in
            flight.turn.begin()
            await gate.pass()
            return runs.next()
        }
        let first = Task { await table.outcome(of: "a", work) }
        #expect(await eventually { gate.count == 1 })
        first.cancel()
        #expect(await first.value.isCancelled)
        #expect(table.isOpen("a"))
        let second = Task { await table.outcome(of: "a", work) }
        #expect(await eventually { table.waiterCount == 1 })
        gate.open()
        let landing = await second.value
        #expect(landing.value == 1 && landing.joined == true && runs.count == 1)
    }

    @Test func whoLeavesHoldsUpNobody() async throws {
        let (table, gate) = (table(), AsyncGate())
        let work: Table.Work = { _ in
            await gate.pass()
            return 1
        }
        let callers = (0..<10).map { _ in Task { await table.outcome(of: "a", work) } }
        #expect(await eventually { table.waiterCount == 10 })
        callers.prefix(9).forEach { $0.cancel() }
        for caller in callers.prefix(9) { #expect(await caller.value.isCancelled) }
        gate.open()
        #expect(await callers[9].value.value == 1)
        #expect(gate.count == 1)
    }

    @Test func aCallerThatWasCancelledBeforeLeavesAtOnce() async {
        let table = table()
        let landing = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await table.outcome(of: "a") { _ in 1 }
        }.value
        #expect(landing.isCancelled || landing.value == 1)
        #expect(await eventually { table.count == 0 })
    }

    @Test func eachCallersPatienceIsItsOwn() async throws {
        let patience = Duration.milliseconds(600)
        let (table, gate) = (table(patience: patience), AsyncGate())
        let work: Table.Work = { flight in
            flight.waitsForWorker()
            await gate.pass()
            return 1
        }
        // Goes on whoever waits for it.
        table.launch("a", urgency: .visitor, work)
        #expect(await eventually { gate.count == 1 })
        @Sendable func wait() async -> (Table.Landing, Duration) {
            let began = ContinuousClock.now
            let landing = await table.outcome(of: "a", work)
            return (landing, began.duration(to: .now))
        }
        let first = Task { await wait() }
        try await Task.sleep(for: .milliseconds(300))
        let second = Task { await wait() }
        for caller in [first, second] {
            let (landing, time) = await caller.value
            #expect(landing.isTimedOut && time >= patience)
        }
        #expect(gate.count == 1)
        gate.open()
    }

    @Test func whenTheLastHasNoMorePatienceTheWorkIsDropped() async throws {
        let table = table(patience: .milliseconds(50))
        let landing = await table.outcome(of: "a") { flight in
            flight.waitsForWorker()
            while !Task.isCancelled { await Task.yield() }
            return 1
        }
        #expect(landing.isTimedOut && table.count == 0)
    }

    @Test(arguments: [true, false]) func patienceIsForTheQueueOnly(hasBegun: Bool) async throws {
        let table = table(patience: .milliseconds(20))
        let landing = await table.outcome(of: "a") { flight in
            // Either it never came to wait for a worker, or it has one.
            if hasBegun {
                flight.turn.begin()
                flight.waitsForWorker()
            }
            do { try await Task.sleep(for: .milliseconds(200)) } catch { return 0 }
            return 1
        }
        #expect(landing.value == 1)
    }

    @Test func workThatNeverEndsDoesNotKeepItsKey() async throws {
        let (table, never, runs) = (table(lifetime: .milliseconds(100)), AsyncGate(), Runs())
        let work: Table.Work = { flight in
            flight.turn.begin()
            let number = runs.next()
            if number == 1 { await never.pass() }
            return number
        }
        #expect(await table.outcome(of: "a", work).isTimedOut)
        // On a machine that is busy the next may not be done in its lifetime either; it is not the first one, though.
        var next = await table.outcome(of: "a", work)
        while next.isTimedOut { next = await table.outcome(of: "a", work) }
        #expect(next.value.map { $0 > 1 } == true)
        never.open()
    }

    @Test func nobodyJoinsWhatWasClosed() async throws {
        let (table, gate, runs) = (table(), AsyncGate(), Runs())
        let work: Table.Work = { _ in
            let number = runs.next()
            await gate.pass()
            return number
        }
        let before = ["a", "b"].map { key in Task { await table.outcome(of: key, work) } }
        #expect(await eventually { runs.count == 2 })
        table.close { $0 == "a" }
        let after = ["a", "b"].map { key in Task { await table.outcome(of: key, work) } }
        #expect(await eventually { table.waiterCount == 4 && runs.count == 3 })
        gate.open()
        var values: [Int?] = []
        for task in before + after { values.append(await task.value.value) }
        #expect(values[2] == 3 && values[3] == values[1] && values[0] != 3)
    }

    @Test func launchedWorkNeedsNobody() async throws {
        let (table, gate, runs) = (table(), AsyncGate(), Runs())
        let work: Table.Work = { _ in
            await gate.pass()
            return runs.next()
        }
        table.launch("a", urgency: .renewal, work)
        table.launch("a", urgency: .renewal, work)
        let caller = Task { await table.outcome(of: "a", work) }
        #expect(await eventually { table.waiterCount == 1 })
        caller.cancel()
        #expect(await caller.value.isCancelled)
        #expect(table.count == 1)
        gate.open()
        #expect(await eventually { runs.count == 1 && table.count == 0 })
    }

    @Test func workIsAsUrgentAsTheMostUrgentCaller() async throws {
        let (table, gate) = (table(), AsyncGate())
        let level = Mutex<Int?>(nil)
        let work: Table.Work = { flight in
            await gate.pass()
            level.withLock { $0 = flight.turn.urgency.level }
            return 1
        }
        let callers = [Urgency.prewarm, .visitor, Urgency(level: 5)].map { urgency in
            Task { await table.outcome(of: "a", urgency: urgency, work) }
        }
        #expect(await eventually { table.waiterCount == 3 })
        gate.open()
        for caller in callers { #expect(await caller.value.value == 1) }
        #expect(level.withLock { $0 } == 3)
    }

    @Test func aFlightThatHasEndedLeavesNothingBehind() async throws {
        let (table, flights) = (table(), 2_000)
        let fly: @Sendable () async -> Void = {
            await withTaskGroup(of: Void.self) { group in
                for key in 0..<flights {
                    // Long enough that whatever is to end it has been set going.
                    group.addTask {
                        _ = await table.outcome(of: "\(key)") { _ in
                            try? await Task.sleep(for: .milliseconds(2))
                            return 1
                        }
                    }
                }
            }
        }
        await fly()
        // A sleeping task leaves 450 bytes and more a flight until its lifetime is over. Other tests take and free memory
        // beside this one: a round may be theirs, most are not.
        var growth: [Int] = []
        for _ in 0..<15 {
            let before = try bytesInUse()
            await fly()
            growth.append(try bytesInUse() - before)
        }
        #expect(growth.sorted()[growth.count / 2] < flights * 200)
    }

    /// What the process has allocated and not freed, by `malloc_info`: all that malloc got from the system but what it holds
    /// free. The header that declares it is not in Swift's module of the C library.
    private func bytesInUse() throws -> Int {
        typealias MallocInfo = @convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32
        let mallocInfo = unsafeBitCast(try #require(dlsym(nil, "malloc_info")), to: MallocInfo.self)
        var (buffer, count): (UnsafeMutablePointer<CChar>?, Int) = (nil, 0)
        let stream = try #require(open_memstream(&buffer, &count))
        #expect(mallocInfo(0, stream) == 0 && fclose(stream) == 0)
        defer { free(buffer) }
        let text = String(cString: try #require(buffer))
        func total(_ name: String) throws -> Int {
            // The last of each is that of all arenas.
            let pattern = try Regex("\(name)\"[^>]* size=\"(\\d+)\"", as: (Substring, Substring).self)
            return try #require(text.matches(of: pattern).last.flatMap { Int($0.1) })
        }
        return try total("system type=\"current") - total("total type=\"fast") - total("total type=\"rest")
    }
}

extension FlightTable.Landing {
    var value: Outcome? { if case .landed(let outcome, _) = self { outcome } else { nil } }
    var joined: Bool? { if case .landed(_, let joined) = self { joined } else { nil } }
    var isCancelled: Bool { if case .cancelled = self { true } else { false } }
    var isTimedOut: Bool { if case .timedOut = self { true } else { false } }
}

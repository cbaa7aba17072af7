import Foundation
import Sandbox
import Synchronization
import TestSupport
import Testing

@testable import Renditions

@Suite("Single flight: callers share work per key", .timeLimit(.minutes(10))) struct SingleFlightTests {
    private typealias Flights = SingleFlight<String, Int>

    private func makeFlights(
        queueTimeout: Duration = .seconds(600), lifetime: Duration = .seconds(600)
    ) -> Flights {
        Flights(queueTimeout: queueTimeout, lifetime: lifetime)
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

    @Test func concurrentCallersShareOneFlight() async throws {
        let (flights, gate, runs) = (makeFlights(), AsyncGate(), Runs())
        let outcomes = try await withThrowingTaskGroup(of: CallOutcome.self) { group in
            for _ in 0..<100 {
                group.addTask {
                    await flights.outcome(for: "a") { _ in
                        await gate.pass()
                        return runs.next()
                    }
                }
            }
            try await waitUntil("100 waiters") { flights.waiterCount == 100 }
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(runs.count == 1 && outcomes.allSatisfy { $0.value == 1 })
        #expect(outcomes.filter { $0.joined == false }.count == 1)
        #expect(flights.count == 0)
        // The key is free again.
        #expect(await flights.outcome(for: "a") { _ in runs.next() }.value == 2)
    }

    @Test func workWithoutCallersIsCancelledBeforeAWorkerHasIt() async throws {
        let (flights, runs, ended) = (makeFlights(), Runs(), AsyncGate())
        let work: Flights.Work = { _ in
            let number = runs.next()
            if number == 1 {
                while !Task.isCancelled { await Task.yield() }
                await ended.pass()
            }
            return number
        }
        let caller = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("the work to run") { runs.count == 1 }
        caller.cancel()
        #expect(await caller.value.isCancelled)
        try await waitUntil("the work to end") { ended.count == 1 }
        #expect(flights.count == 0)
        // A later caller starts new work and does not get the cancelled one.
        #expect(await flights.outcome(for: "a", work).value == 2)
        ended.open()
    }

    @Test func workThatAWorkerHasGoesOnWithoutCallersAndIsJoined() async throws {
        let (flights, gate, runs) = (makeFlights(), AsyncGate(), Runs())
        let work: Flights.Work = { flight in
            flight.turn.begin()
            await gate.pass()
            return runs.next()
        }
        let first = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("the work at the gate") { gate.count == 1 }
        first.cancel()
        #expect(await first.value.isCancelled)
        #expect(flights.isJoinable("a"))
        let second = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("one waiter") { flights.waiterCount == 1 }
        gate.open()
        let outcome = await second.value
        #expect(outcome.value == 1 && outcome.joined == true && runs.count == 1)
    }

    @Test func cancelledCallersLeaveTheFlightToTheOthers() async throws {
        let (flights, gate) = (makeFlights(), AsyncGate())
        let work: Flights.Work = { _ in
            await gate.pass()
            return 1
        }
        let callers = (0..<10).map { _ in Task { await flights.outcome(for: "a", work) } }
        try await waitUntil("ten waiters") { flights.waiterCount == 10 }
        callers.prefix(9).forEach { $0.cancel() }
        for caller in callers.prefix(9) { #expect(await caller.value.isCancelled) }
        gate.open()
        #expect(await callers[9].value.value == 1)
        #expect(gate.count == 1)
    }

    @Test func aCallerThatWasCancelledBeforeTheCallReturnsAtOnce() async throws {
        let flights = makeFlights()
        let outcome = await Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await flights.outcome(for: "a") { _ in 1 }
        }.value
        #expect(outcome.isCancelled || outcome.value == 1)
        try await waitUntil("the end of the flight") { flights.count == 0 }
    }

    @Test func eachCallerHasItsOwnTimeout() async throws {
        let timeout = Duration.milliseconds(600)
        let (flights, gate) = (makeFlights(queueTimeout: timeout), AsyncGate())
        let work: Flights.Work = { flight in
            flight.markQueued()
            await gate.pass()
            return 1
        }
        // Detached, so that it goes on when its callers time out.
        flights.start("a", urgency: .visitor, work)
        try await waitUntil("the work at the gate") { gate.count == 1 }
        @Sendable func wait() async -> (CallOutcome, Duration) {
            let began = ContinuousClock.now
            let outcome = await flights.outcome(for: "a", work)
            return (outcome, began.duration(to: .now))
        }
        let first = Task { await wait() }
        let half = ContinuousClock.now + timeout / 2
        try await waitUntil("half of the first caller's time to be over") { ContinuousClock.now >= half }
        let second = Task { await wait() }
        for caller in [first, second] {
            let (outcome, time) = await caller.value
            #expect(outcome.isTimedOut && time >= timeout)
        }
        #expect(gate.count == 1)
        gate.open()
    }

    @Test func workIsCancelledWhenTheLastCallerTimesOut() async throws {
        let flights = makeFlights(queueTimeout: .milliseconds(50))
        let outcome = await flights.outcome(for: "a") { flight in
            flight.markQueued()
            while !Task.isCancelled { await Task.yield() }
            return 1
        }
        #expect(outcome.isTimedOut && flights.count == 0)
    }

    @Test(arguments: [true, false]) func theTimeoutCoversOnlyTheQueue(hasBegun: Bool) async throws {
        let flights = makeFlights(queueTimeout: .milliseconds(20))
        let outcome = await flights.outcome(for: "a") { flight in
            // The work has not been queued, or a worker has it.
            if hasBegun {
                flight.turn.begin()
                flight.markQueued()
            }
            let later = ContinuousClock.now + .milliseconds(200)
            do { try await waitUntil("ten times the limit to be over") { ContinuousClock.now >= later } } catch { return 0 }
            return 1
        }
        #expect(outcome.value == 1)
    }

    @Test func aCallerWaitsNoLongerThanItsLimitAndWorkThatHasBegunGoesOn() async throws {
        // Far above the time in which the work begins.
        let (gate, limit) = (AsyncGate(), Duration.seconds(3))
        let flights = Flights(queueTimeout: .seconds(600), waitTimeout: limit, lifetime: .seconds(600))
        let work: Flights.Work = { flight in
            flight.turn.begin()
            await gate.pass()
            return 7
        }
        #expect(await flights.outcome(for: "a", work).error == .waitTimedOut(limit: limit))
        #expect(flights.isJoinable("a"))
        // A caller that follows the flight has no limit, and neither has background work.
        async let follower = try flights.value(for: "a", watch: MissWatch(), work)
        async let background = flights.outcome(for: "a", urgency: .renewal, work)
        try await waitUntil("both wait") { flights.waiterCount == 2 }
        let later = ContinuousClock.now + limit + .seconds(1)
        try await waitUntil("more than the limit to be over") { ContinuousClock.now >= later }
        #expect(flights.waiterCount == 2)
        gate.open()
        #expect(try await follower.value == 7)
        #expect(await background.value == 7)
    }

    @Test func workThatNeverEndsIsAbandonedAfterItsLifetime() async throws {
        let (flights, never, runs) = (makeFlights(lifetime: .milliseconds(100)), AsyncGate(), Runs())
        let work: Flights.Work = { flight in
            flight.turn.begin()
            let number = runs.next()
            if number == 1 { await never.pass() }
            return number
        }
        #expect(await flights.outcome(for: "a", work).isTimedOut)
        // On a busy machine the next work may exceed its lifetime too.
        var next = await flights.outcome(for: "a", work)
        while next.isTimedOut { next = await flights.outcome(for: "a", work) }
        #expect(next.value.map { $0 > 1 } == true)
        never.open()
    }

    @Test func closedFlightsAreNotJoined() async throws {
        let (flights, gate, runs) = (makeFlights(), AsyncGate(), Runs())
        let work: Flights.Work = { _ in
            let number = runs.next()
            await gate.pass()
            return number
        }
        let before = ["a", "b"].map { key in Task { await flights.outcome(for: key, work) } }
        try await waitUntil("two runs") { runs.count == 2 }
        flights.close { $0 == "a" }
        let after = ["a", "b"].map { key in Task { await flights.outcome(for: key, work) } }
        try await waitUntil("four waiters and three runs") { flights.waiterCount == 4 && runs.count == 3 }
        gate.open()
        var values: [Int?] = []
        for task in before + after { values.append(await task.value.value) }
        #expect(values[2] == 3 && values[3] == values[1] && values[0] != 3)
    }

    @Test func detachedWorkGoesOnWithoutCallers() async throws {
        let (flights, gate, runs) = (makeFlights(), AsyncGate(), Runs())
        let work: Flights.Work = { _ in
            await gate.pass()
            return runs.next()
        }
        flights.start("a", urgency: .renewal, work)
        flights.start("a", urgency: .renewal, work)
        let caller = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("one waiter") { flights.waiterCount == 1 }
        caller.cancel()
        #expect(await caller.value.isCancelled)
        #expect(flights.count == 1)
        gate.open()
        try await waitUntil("one run and no flight") { runs.count == 1 && flights.count == 0 }
    }

    @Test func workThatOutlivesItsCallersGoesOnWithoutThem() async throws {
        let (flights, gate, runs) = (makeFlights(), AsyncGate(), Runs())
        let work: Flights.Work = { _ in
            await gate.pass()
            return runs.next()
        }
        let waiting = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("the first caller") { flights.waiterCount == 1 }
        let leaving = Task { await flights.outcome(for: "a", outlivesCallers: true, work) }
        try await waitUntil("both callers") { flights.waiterCount == 2 }
        for caller in [waiting, leaving] {
            caller.cancel()
            #expect(await caller.value.isCancelled)
        }
        #expect(flights.count == 1 && flights.isJoinable("a"))
        gate.open()
        try await waitUntil("one run and no flight") { runs.count == 1 && flights.count == 0 }
    }

    @Test(arguments: [true, false]) func detachedWorkMayDependOnItsCallersAgain(hasCaller: Bool) async throws {
        let (flights, gate) = (makeFlights(), AsyncGate())
        let ended = Mutex<Bool?>(nil)
        let work: Flights.Work = { flight in
            await gate.pass()
            flight.dependOnCallers()
            ended.withLock { $0 = Task.isCancelled }
            return 1
        }
        flights.start("a", urgency: .visitor, work)
        let caller = hasCaller ? Task { await flights.outcome(for: "a", work) } : nil
        try await waitUntil("the callers") { flights.waiterCount == (hasCaller ? 1 : 0) && gate.count == 1 }
        gate.open()
        try await waitUntil("the end") { ended.withLock { $0 } != nil && flights.count == 0 }
        #expect(ended.withLock { $0 } == !hasCaller)
        if let caller { #expect(await caller.value.value == 1) }
    }

    @Test func aLaterCallerDoesNotDetachWorkThatDependsOnItsCallers() async throws {
        let (flights, gate) = (makeFlights(), AsyncGate())
        let work: Flights.Work = { flight in
            flight.dependOnCallers()
            await gate.pass()
            return 1
        }
        let first = Task { await flights.outcome(for: "a", work) }
        try await waitUntil("the work at the gate") { gate.count == 1 }
        let second = Task { await flights.outcome(for: "a", outlivesCallers: true, work) }
        try await waitUntil("both callers") { flights.waiterCount == 2 }
        for caller in [first, second] {
            caller.cancel()
            #expect(await caller.value.isCancelled)
        }
        #expect(flights.count == 0 && !flights.isJoinable("a"))
        gate.open()
    }

    @Test func theFlightHasTheUrgencyOfItsMostUrgentCaller() async throws {
        let (flights, gate) = (makeFlights(), AsyncGate())
        let level = Mutex<Int?>(nil)
        let work: Flights.Work = { flight in
            await gate.pass()
            level.withLock { $0 = flight.turn.urgency.level }
            return 1
        }
        let callers = [Urgency.prewarm, .visitor, Urgency(level: 5)].map { urgency in
            Task { await flights.outcome(for: "a", urgency: urgency, work) }
        }
        try await waitUntil("three waiters") { flights.waiterCount == 3 }
        gate.open()
        for caller in callers { #expect(await caller.value.value == 1) }
        #expect(level.withLock { $0 } == 3)
    }

    @Test func endedFlightsLeaveNoMemoryBehind() async throws {
        let (flights, count) = (makeFlights(), 2_000)
        let fly: @Sendable () async -> Void = {
            await withTaskGroup(of: Void.self) { group in
                for key in 0..<count {
                    // Long enough for the lifetime timer to be set.
                    group.addTask {
                        _ = await flights.outcome(for: "\(key)") { _ in
                            let later = ContinuousClock.now + .milliseconds(2)
                            try? await waitUntil("two milliseconds to be over") { ContinuousClock.now >= later }
                            return 1
                        }
                    }
                }
            }
        }
        await fly()
        // A timer that sleeps in a task would hold at least 450 bytes per flight until the lifetime ends. Other tests
        // allocate and free memory concurrently, so the median of the rounds counts.
        var growth: [Int] = []
        for _ in 0..<15 {
            let before = try bytesInUse()
            await fly()
            growth.append(try bytesInUse() - before)
        }
        #expect(growth.sorted()[growth.count / 2] < count * 200)
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
        return try total("system type=\"current", text) - total("total type=\"fast", text) - total("total type=\"rest", text)
    }

    /// The size of the last element of `malloc_info` with this name, which is that of all arenas.
    private func total(_ name: String, _ info: String) throws -> Int {
        let pattern = try Regex("\(name)\"[^>]* size=\"(\\d+)\"", as: (Substring, Substring).self)
        return try #require(info.matches(of: pattern).last.flatMap { Int($0.1) })
    }
}

/// The outcome of one call.
private struct CallOutcome: Sendable {
    var value: Int?
    var joined: Bool?
    var error: RenditionError?

    var isCancelled: Bool { error == .cancelled }
    var isTimedOut: Bool { error == .overloaded(cause: nil) }
}

extension SingleFlight where Key == String, Value == Int {
    fileprivate func outcome(
        for key: String, urgency: Urgency = .visitor, outlivesCallers: Bool = false, _ work: @escaping Work
    ) async -> CallOutcome {
        do throws(RenditionError) {
            let (value, joined) = try await value(for: key, urgency: urgency, outlivesCallers: outlivesCallers, work)
            return CallOutcome(value: value, joined: joined)
        } catch {
            return CallOutcome(error: error)
        }
    }
}

import SystemIO
import Testing

@testable import Sandbox

@Suite("Clients take turns") struct FairTurnsTests {
    private func client(_ number: UInt32) -> ClientNetwork { ClientNetwork(.v4(number)) }

    private func job(_ clients: [UInt32?], _ urgency: Urgency = .visitor, cost: Int = 1) -> FairTurns.Job {
        let turn = JobTurn(urgency, for: clients.first.flatMap { $0.map(client) })
        for other in clients.dropFirst() { turn.raise(to: urgency, for: other.map(client)) }
        return FairTurns.Job(claims: turn.claims, urgency: turn.urgency, cost: cost)
    }

    /// The indices of the jobs in the order of their turns.
    private func order(_ jobs: [FairTurns.Job], _ turns: inout FairTurns) -> [Int] {
        var waiting = Array(jobs.enumerated())
        var order: [Int] = []
        while let next = turns.next(waiting.map(\.element)) { order.append(waiting.remove(at: next).offset) }
        return order
    }

    private func order(_ jobs: [FairTurns.Job]) -> [Int] {
        var turns = FairTurns()
        return order(jobs, &turns)
    }

    @Test func theMostUrgentJobsOfAClientComeFirstAndKeepTheirOrder() {
        let jobs = [5, 3, 0, 3].map { job([1], Urgency(level: $0)) }
        #expect(order(jobs) == [2, 1, 3, 0])
    }

    @Test func urgencyGivesNoTurnOfAnotherClient() {
        let jobs = (0..<4).map { _ in job([1], Urgency(level: 0)) } + (0..<2).map { _ in job([2], Urgency(level: 7)) }
        #expect(order(jobs) == [0, 4, 1, 5, 2, 3])
    }

    @Test func unknownClientsAreOneClient() {
        #expect(order([job([nil]), job([nil]), job([1])]) == [0, 2, 1])
    }

    @Test func costlyJobsCountMore() {
        let jobs = (0..<2).map { _ in job([1], cost: 3) } + (0..<5).map { _ in job([2]) }
        #expect(order(jobs) == [0, 2, 3, 4, 1, 5, 6])
    }

    @Test func jobsThatNoClientWaitsForComeLast() {
        let jobs = [job([1], .prewarm), job([1], .renewal), job([1], Urgency(level: 7)), job([2], Urgency(level: 7))]
        #expect(order(jobs) == [2, 3, 1, 0])
    }

    @Test func aJobOfSeveralClientsRunsAtTheFirstOfTheirTurns() {
        // The third job would be the third one of the first client.
        let jobs = [job([1]), job([1]), job([1, 2]), job([3])]
        #expect(order(jobs) == [0, 2, 3, 1])
    }

    @Test func aClientThatWasAwaySavesNoTurns() {
        var turns = FairTurns()
        #expect(order([job([2])] + (0..<10).map { _ in job([1]) }, &turns).count == 11)
        let jobs = (0..<4).map { _ in job([2]) } + (0..<4).map { _ in job([1]) }
        #expect(order(jobs, &turns) == [0, 1, 4, 2, 5, 3, 6, 7])
    }
}

@Suite("Requests for a job are recorded with it") struct JobTurnTests {
    @Test func levelsOfClientsAreNeverThoseOfBackgroundWork() {
        for level in -1...9 { #expect(!Urgency(level: level).isBackground && Urgency(level: level) < .renewal) }
        #expect(Urgency.renewal < .prewarm && Urgency.prewarm.isBackground)
    }

    @Test func eachClientHasItsMostUrgentLevel() {
        let client = ClientNetwork(.v4(1))
        let turn = JobTurn(.prewarm)
        #expect(turn.claims.isEmpty && turn.urgency == .prewarm)
        turn.raise(to: Urgency(level: 6), for: client)
        turn.raise(to: Urgency(level: 2), for: client)
        turn.raise(to: Urgency(level: 4), for: client)
        turn.raise(to: .renewal)
        #expect(turn.claims == [JobTurn.Claim(client: client, level: 2)])
        #expect(turn.urgency == Urgency(level: 2))
    }

    @Test func theNumberOfClientsIsBounded() {
        let turn = JobTurn()
        for number in 0..<100 as Range<UInt32> { turn.raise(to: .visitor, for: ClientNetwork(.v4(number))) }
        #expect(turn.claims.count == 8)
    }
}

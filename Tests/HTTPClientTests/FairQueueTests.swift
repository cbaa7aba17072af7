import TestSupport
import Testing

@testable import HTTPClient

@Suite("A fair queue admits up to its limits and skips keys that are at theirs") struct FairQueueTests {
    private func queue(limit: Int = 3, perKey: Int = 2, waiting: Int = 4, waitingPerKey: Int = 3) -> FairQueue<Int, String> {
        FairQueue(
            HTTPClient.Limits(running: limit, runningPerKey: perKey, waiting: waiting, waitingPerKey: waitingPerKey))
    }

    @Test func operationsAreAdmittedUpToBothLimits() {
        var queue = queue()
        expect(queue.enter(1, key: "a"), .admitted)
        expect(queue.enter(2, key: "a"), .admitted)
        expect(queue.enter(3, key: "a"), .queued)
        expect(queue.enter(4, key: "b"), .admitted)
        expect(queue.enter(5, key: "c"), .queued)
        #expect(queue.runningCount == 3)
        #expect(queue.waitingCount == 2)
    }

    @Test func keyAtItsLimitDoesNotBlockOtherKeys() {
        var queue = queue()
        for id in 1...3 { _ = queue.enter(id, key: "slow") }
        _ = queue.enter(4, key: "b")
        expect(queue.enter(5, key: "b"), .queued)
        queue.leave("b")
        expect(queue.next(), 5)
        expect(queue.next(), nil)
        queue.leave("slow")
        expect(queue.next(), 3)
    }

    @Test func whatMayNotBeginWaitsAndBlocksNoOther() {
        var queue = queue()
        expect(queue.enter(1, key: "a") { false }, .queued)
        expect(queue.enter(2, key: "a"), .admitted)
        expect(queue.enter(3, key: "b") { false }, .queued)
        expect(queue.next { $0 == 3 }, 3)
        expect(queue.next { _ in false }, nil)
        #expect(queue.runningCount == 2 && queue.waitingCount == 1)
        // Nothing is asked that the limits do not allow.
        expect(queue.enter(4, key: "a"), .admitted)
        var asked = false
        expect(
            queue.next { _ in
                asked = true
                return true
            }, nil)
        #expect(!asked)
    }

    @Test func queueIsBoundedInTotalAndPerKey() {
        var queue = queue(limit: 1, perKey: 1)
        for id in 1...4 { _ = queue.enter(id, key: "a") }
        #expect(queue.waitingCount == 3)
        expect(queue.enter(5, key: "a"), .refused)
        expect(queue.enter(6, key: "b"), .queued)
        expect(queue.enter(7, key: "c"), .refused)
    }

    @Test func continuationIsQueuedFirstAndNeverRefused() {
        var queue = queue(limit: 1, perKey: 1, waiting: 1, waitingPerKey: 1)
        expect(queue.enter(1, key: "a"), .admitted)
        expect(queue.enter(2, key: "a"), .queued)
        expect(queue.enter(3, key: "a", isContinuation: true), .queued)
        queue.leave("a")
        expect(queue.next(), 3)
    }

    @Test func removingAQueuedOperationFreesCapacityOfTheQueue() {
        var queue = queue(limit: 1, perKey: 1, waiting: 1)
        _ = queue.enter(1, key: "a")
        _ = queue.enter(2, key: "a")
        queue.remove(1)
        expect(queue.enter(3, key: "a"), .refused)
        queue.remove(2)
        expect(queue.enter(3, key: "a"), .queued)
        queue.leave("a")
        expect(queue.next(), 3)
    }

    @Test func newLimitsAffectLaterDecisionsOnly() {
        var queue = queue(limit: 2, perKey: 2)
        for id in 1...4 { _ = queue.enter(id, key: "a") }
        queue.limits = HTTPClient.Limits(running: 1, runningPerKey: 1, waiting: 1, waitingPerKey: 1)
        #expect(queue.runningCount == 2 && queue.waitingCount == 2)
        expect(queue.enter(5, key: "b"), .refused)
        queue.leave("a")
        expect(queue.next(), nil)
        queue.leave("a")
        expect(queue.next(), 3)
        queue.limits = HTTPClient.Limits(running: 9, runningPerKey: 9, waiting: 9, waitingPerKey: 9)
        expect(queue.next(), 4)
    }

    /// A model that recounts everything from lists for each decision.
    private struct Model {
        let limits: HTTPClient.Limits
        var running: [(id: Int, key: String)] = []
        var waiting: [(id: Int, key: String)] = []

        func canRun(_ key: String) -> Bool {
            running.count < limits.running && running.count { $0.key == key } < limits.runningPerKey
        }

        mutating func enter(_ id: Int, _ key: String, _ isContinuation: Bool) -> FairQueue<Int, String>.Decision {
            if canRun(key) {
                running.append((id, key))
                return .admitted
            }
            if isContinuation {
                waiting.insert((id, key), at: 0)
                return .queued
            }
            let sameKey = waiting.count { $0.key == key }
            guard waiting.count < limits.waiting, sameKey < limits.waitingPerKey else { return .refused }
            waiting.append((id, key))
            return .queued
        }

        mutating func next() -> Int? {
            guard let index = waiting.firstIndex(where: { canRun($0.key) }) else { return nil }
            running.append(waiting.remove(at: index))
            return running.last?.id
        }
    }

    @Test(arguments: 1...20) func decidesAsAModelThatRecountsEverything(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        func number(_ bound: Int) -> Int { Int(random.next() % UInt64(bound)) }
        let limits = HTTPClient.Limits(
            running: 1 + number(6), runningPerKey: 1 + number(4), waiting: number(8), waitingPerKey: number(5))
        var queue = FairQueue<Int, String>(limits)
        var model = Model(limits: limits)
        for id in 0..<500 {
            let key = ["a", "b", "c"][number(3)]
            switch number(4) {
            case 0, 1:
                let isContinuation = number(8) == 0
                expect(queue.enter(id, key: key, isContinuation: isContinuation), model.enter(id, key, isContinuation))
            case 2:
                guard !model.running.isEmpty else { continue }
                queue.leave(model.running.remove(at: number(model.running.count)).key)
                expect(queue.next(), model.next())
            default:
                guard !model.waiting.isEmpty else { continue }
                queue.remove(model.waiting.remove(at: number(model.waiting.count)).id)
            }
            #expect(queue.runningCount == model.running.count && queue.waitingCount == model.waiting.count)
        }
    }
}

/// `#expect` for a mutating call, which the macro does not accept.
func expect<Value: Equatable>(_ value: Value, _ expected: Value, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(value == expected, sourceLocation: sourceLocation)
}

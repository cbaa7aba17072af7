import HTTPClient
import Synchronization
import SystemIO
import TestSupport
import Testing

@Suite("Deliveries are repeated after temporary failures, and no receiver delays another", .timeLimit(.minutes(10)))
struct DeliveryQueueTests {
    private final class Log: Sendable {
        private let entries = Mutex<[String]>([])

        func add(_ text: String) { entries.withLock { $0.append(text) } }

        var all: [String] { entries.withLock { $0 } }
    }

    private func limits(items: Int = 100, attempts: Int = 3) -> DeliveryLimits {
        DeliveryLimits(
            items: items, attempts: attempts, backoff: Backoff(first: .milliseconds(1), longest: .milliseconds(1)))
    }

    private func queue(
        _ limits: DeliveryLimits, _ log: Log, _ send: @escaping @Sendable ([String]) async -> DeliveryResult
    ) -> DeliveryQueue<String> {
        DeliveryQueue(limits, send: send) { items, event in log.add("\(items.joined(separator: " ")): \(event)") }
    }

    @Test(arguments: [
        (204, "delivered"), (404, "failed(cause: \"status 404\")"), (301, "failed(cause: \"status 301\")"),
    ])
    func aStatusThatWillNotChangeEndsTheDelivery(_ status: Int, _ event: String) async throws {
        let log = Log()
        let queue = queue(limits(), log) { _ in DeliveryResult(status: status) }
        #expect(queue.add("a", to: "x"))
        try await waitUntil("the end") { queue.count == 0 }
        #expect(log.all == ["a: \(event)"])
    }

    @Test(arguments: [408, 429, 500, 503]) func whatMayPassIsRepeatedUpToTheLimit(_ status: Int) async throws {
        let log = Log()
        let queue = queue(limits(), log) { _ in DeliveryResult(status: status) }
        #expect(queue.add("a", to: "x"))
        try await waitUntil("the end") { queue.count == 0 }
        #expect(log.all.map { $0.hasPrefix("a: repeated") } == [true, true, false])
        #expect(log.all.last == "a: failed(cause: \"status \(status)\")")
    }

    @Test func aReceiverThatHangsDelaysNoOtherAndItsItemsKeepTheirOrder() async throws {
        let (log, gate) = (Log(), AsyncGate())
        let queue = queue(limits(), log) { items in
            if items == ["slow 1"] { await gate.pass() }
            return .delivered
        }
        for item in ["slow 1", "slow 2"] { #expect(queue.add(item, to: "slow")) }
        #expect(queue.add("fast", to: "fast"))
        try await waitUntil("the other receiver") { log.all == ["fast: delivered"] }
        gate.open()
        try await waitUntil("the end") { queue.count == 0 }
        #expect(log.all == ["fast: delivered", "slow 1: delivered", "slow 2: delivered"])
    }

    @Test func severalBatchesAreSentAtOnceWhereTheLimitAllowsIt() async throws {
        let (log, gate) = (Log(), AsyncGate())
        var limits = limits(items: 4)
        limits.perReceiver = 2
        let queue = queue(limits, log) { _ in
            await gate.pass()
            return .delivered
        }
        for item in ["a", "b", "c", "d"] { #expect(queue.add(item, to: "x")) }
        // The limit counts what is being sent.
        #expect(!queue.add("e", to: "y"))
        try await waitUntil("two attempts") { gate.count == 2 }
        gate.open()
        try await waitUntil("the end") { queue.count == 0 }
        #expect(log.all.sorted() == ["a", "b", "c", "d"].map { "\($0): delivered" })
    }

    @Test func aReceiverThatHangsLeavesRoomForOthersWhereTheLimitSaysSo() async throws {
        let (log, gate) = (Log(), AsyncGate())
        var limits = limits(items: 40)
        limits.leavesRoom = true
        let queue = queue(limits, log) { items in
            if items == ["slow"] { await gate.pass() }
            return .delivered
        }
        #expect((0..<40).filter { _ in queue.add("slow", to: "slow") }.count == 30)
        #expect((0..<7).allSatisfy { _ in queue.add("fast", to: "fast") })
        try await waitUntil("the other receiver") { log.all.count == 7 }
        gate.open()
        try await waitUntil("the end") { queue.count == 0 }
        // What was delivered does not count.
        #expect(queue.add("slow", to: "slow"))
    }

    @Test func aReceiverThatWasIdleIsSentToAgain() async throws {
        let log = Log()
        let queue = queue(limits(), log) { _ in .delivered }
        for number in 1...20 {
            #expect(queue.add("\(number)", to: "x"))
            try await waitUntil("the delivery") { queue.count == 0 }
        }
        #expect(log.all == (1...20).map { "\($0): delivered" })
    }

    @Test func aStopGivesUpWhatIsLeft() async throws {
        let (log, sent) = (Log(), Log())
        let queue = queue(limits(attempts: 1_000_000), log) { items in
            sent.add(items[0])
            return .unavailable(cause: "a test")
        }
        for item in ["a", "b"] { #expect(queue.add(item, to: "x")) }
        try await waitUntil("an attempt") { !sent.all.isEmpty }
        await queue.stop(within: .zero)
        #expect(queue.count == 0 && !queue.add("c", to: "x"))
        #expect(log.all.filter { $0.hasSuffix("stopped") } == ["a: stopped", "b: stopped"])
    }
}

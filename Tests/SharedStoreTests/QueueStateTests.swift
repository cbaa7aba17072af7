import SystemIO
import TestSupport
import Testing

@testable import SharedStore

@Suite("The state of the queue keeps its order at any size") struct QueueStateTests {
    private let limits = WriteBehindQueue.Limits(puts: 3, bytes: 1 << 30)

    private func name(_ number: Int) throws -> RenditionName {
        let digits = String(number)
        return try #require(
            RenditionName(id: String(repeating: "0", count: 64 - digits.utf8.count) + digits, fileExtension: "mp4"))
    }

    /// Quadratic work takes minutes.
    @Test func aHundredThousandDeletionsAreQuick() throws {
        let count = 100_000
        let start = ContinuousClock.now
        let deletes = try (1...count).map { QueueEntry(sequence: UInt64($0), name: try name($0), change: .delete) }
        var state = QueueState()
        let superseded = state.restore(deletes, holdsPuts: false)
        #expect(superseded.isEmpty)
        let record = try TestRendition(1).record
        var misses = 0
        for delete in deletes {
            if state.takeNext() != delete || !state.hasDelete(of: delete.name) { misses += 1 }
            if state.lastEntry(of: delete.name) != delete { misses += 1 }
            state.pause(delete, isRefused: true) { _ in nil }
        }
        for number in 1...1000 {
            let added = state.appendPut(try name(count + number), record, mediaType: "video/mp4", limits)
            state.makeReady(try #require(added).entry)
        }
        #expect(state.count == count + 3 && state.dropped == 997)
        state.makeReady(all: .paused)
        for _ in 0..<3 {
            let put = state.takeNext()
            state.remove(try #require(put))
        }
        for delete in deletes.dropFirst(count / 2) where state.withdraw(delete.name).removed != [delete] { misses += 1 }
        for delete in deletes.prefix(count / 2) {
            if state.takeNext() != delete { misses += 1 }
            state.remove(delete)
        }
        #expect(misses == 0)
        #expect(state.count == 0 && state.isDrained && !state.hasNext && state.bytes == 0)
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    @Test func anOutageChangesNoOrder() throws {
        var state = QueueState()
        var deletes: [QueueEntry] = []
        for number in 1...3 {
            deletes.append(try #require(state.appendDelete(try name(number), limits)))
            state.makeReady(deletes[number - 1])
        }
        for isRefused in [false, true] {
            let first = state.takeNext()
            #expect(first == deletes[0])
            state.pause(deletes[0], isRefused: isRefused) { _ in nil }
            state.makeReady(all: .paused)
        }
        let next = state.takeNext()
        #expect(next == deletes[1])
    }

    @Test func putsAreEvictedByAgeAfterTheyFailed() throws {
        var state = QueueState()
        let record = try TestRendition(1).record
        var puts: [QueueEntry] = []
        for number in 1...3 {
            let added = state.appendPut(try name(number), record, mediaType: "video/mp4", limits)
            puts.append(try #require(added).entry)
            state.makeReady(puts[number - 1])
        }
        for _ in 0..<100 {
            for put in puts {
                let next = state.takeNext()
                #expect(next == put)
                state.pause(put, isRefused: true) { _ in nil }
            }
            state.makeReady(all: .paused)
        }
        // The oldest is being sent.
        let oldest = state.takeNext()
        #expect(oldest == puts[0])
        let fourth = state.appendPut(try name(4), record, mediaType: "video/mp4", limits)
        #expect(fourth?.evicted == [puts[1]])
        state.makeReady(puts[0])
        let fifth = state.appendPut(try name(5), record, mediaType: "video/mp4", limits)
        #expect(fifth?.evicted == [puts[0]])
    }

    @Test func aHeapGivesItsElementsInOrder() {
        var numbers = SeededNumbers(seed: 7)
        var expected: [UInt64] = []
        var heap = Heap(expected)
        for _ in 0..<500 {
            let number = numbers.next() % 100
            heap.insert(number)
            expected.append(number)
        }
        #expect(Heap(expected).first == expected.min())
        var order: [UInt64] = []
        while let first = heap.removeFirst() { order.append(first) }
        #expect(order == expected.sorted() && heap.count == 0)
    }
}

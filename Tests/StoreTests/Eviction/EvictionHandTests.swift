import SystemIO
import TestSupport
import Testing

@testable import Store

@Suite("The hand of eviction visits objects from the oldest on and spares those in use") struct EvictionHandTests {
    /// Objects with the sequences 1 up to a number, without those that are removed.
    private struct Queue {
        let space: [Int64]
        var removed: Set<Int64> = []

        func rows(after sequence: Int64, limit: Int) -> [ObjectRow] {
            (1...Int64(space.count)).filter { $0 > sequence && !removed.contains($0) }.prefix(limit).map { number in
                let record = ObjectRecord(
                    id: .test("object \(number)"), fileExtension: "mp4", length: space[Int(number) - 1],
                    content: ContentDigest(digest: SourceDigest(of: [1]).digest), created: 0, facts: [])
                return ObjectRow(sequence: number, record: record)
            }
        }
    }

    private func object(_ sequence: Int64) throws -> StoredObject {
        let row = Queue(space: Array(repeating: 1, count: Int(sequence))).rows(after: sequence - 1, limit: 1)[0]
        return StoredObject(record: row.record, descriptor: try MemoryFile(name: "test").seal(), sequence: row.sequence)
    }

    /// Selects and removes.
    private func select(
        _ hand: inout EvictionHand, _ wanted: Int64, _ queue: inout Queue, _ visited: VisitedObjects = VisitedObjects()
    ) throws -> [Int64] {
        while true {
            let selected = try hand.select(atLeast: wanted, visited: visited) { queue.rows(after: $0, limit: $1) }
            guard let selected else { return [] }
            if selected.isEmpty { continue }
            queue.removed.formUnion(selected.map(\.sequence))
            return selected.map(\.sequence)
        }
    }

    @Test func handContinuesWhereItStopped() throws {
        var queue = Queue(space: Array(repeating: 10, count: 5))
        var hand = EvictionHand(at: 0)
        let first = try select(&hand, 4609, &queue)
        #expect(first == [1, 2] && hand.position == 2)
        let second = try select(&hand, 9217, &queue)
        #expect(second == [3, 4, 5])
        queue.removed.remove(5)
        var restarted = EvictionHand(at: 4)
        let third = try select(&restarted, 1, &queue)
        #expect(third == [5])
    }

    @Test func handStartsAgainAtTheOldestObject() throws {
        var queue = Queue(space: [10, 10, 10])
        var hand = EvictionHand(at: 2)
        let all = [try select(&hand, .max, &queue), try select(&hand, .max, &queue), try select(&hand, .max, &queue)]
        #expect(all == [[3], [1, 2], []])
        #expect(EvictionHand(at: -7).position == 0)
    }

    @Test func objectsThatAreAllInUseAreSelectedInTheSecondLap() throws {
        var queue = Queue(space: [1, 1, 1, 1])
        let visited = VisitedObjects()
        for sequence in Int64(1)...4 { visited.note(try object(sequence)) }
        var hand = EvictionHand(at: 2)
        let selected = try select(&hand, 1, &queue, visited)
        #expect(selected == [3] && hand.position == 3)
    }

    @Test func usedObjectsArePassedOnce() throws {
        var queue = Queue(space: Array(repeating: 10, count: 10))
        let visited = VisitedObjects()
        for sequence: Int64 in [1, 3, 4] { visited.note(try object(sequence)) }
        var hand = EvictionHand(at: 0)
        let first = try select(&hand, 3 * 4608, &queue, visited)
        #expect(first == [2, 5, 6])
        let second = try select(&hand, .max, &queue, visited)
        let third = try select(&hand, .max, &queue, visited)
        #expect(second == [7, 8, 9, 10] && third == [1, 3, 4])
    }

    @Test func oneCallSelectsABoundedNumberOfObjects() throws {
        var queue = Queue(space: Array(repeating: 1, count: 200))
        var hand = EvictionHand(at: 0)
        var selected: [Int64] = []
        while selected.count < 200 {
            let some = try select(&hand, .max, &queue)
            try #require((1...64).contains(some.count))
            selected += some
        }
        #expect(selected == Array(1...200))
    }

    @Test func handBeginsALapOnlyIfItHasClearedABit() throws {
        var queue = Queue(space: [1, 1, 1])
        let visited = VisitedObjects()
        let object = try object(1)
        visited.note(object)
        #expect(visited.clear(1))
        var hand = EvictionHand(at: 1)
        _ = try select(&hand, 1, &queue, visited)
        visited.note(object)
        #expect(!visited.clear(1))
        visited.beginLap()
        visited.note(object)
        hand = EvictionHand(at: 0)
        let selected = try select(&hand, 1, &queue, visited)
        #expect(selected == [3])
        visited.note(object)
        #expect(visited.clear(1))
    }

    @Test func bitsBeyondTheLimitReplaceAllOthers() throws {
        let visited = VisitedObjects(limit: 3)
        let objects = try (1...4).map { try object(Int64($0)) }
        for object in objects { visited.note(object) }
        #expect(!visited.clear(1))
        #expect(visited.clear(4))
        // A forgotten object reports its next use again.
        visited.note(objects[0])
        #expect(visited.clear(1))
    }
}

import SystemIO
import TestSupport
import Testing

@testable import Cache

@Suite("The hand of eviction visits objects from the oldest on and spares those in use") struct EvictionHandTests {
    let directory: TemporaryDirectory
    private let index: Index

    init() throws {
        directory = try TemporaryDirectory(inMemory: true)
        index = try Index(path: directory.path + "/index")
    }

    /// Adds objects of 10 bytes with the sequences 1 up to `count`.
    private func addObjects(_ count: Int64) throws {
        let lines = (1...count).map { number in
            let record = ObjectRecord(
                id: .test("object \(number)"), fileExtension: "mp4", length: 10,
                content: ContentDigest(digest: SourceDigest(of: [1]).digest), created: 0,
                facts: [])
            return JournalLine(sequence: number, entry: .object(record))
        }
        _ = try index.follow(lines, to: nil)
    }

    private func object(_ sequence: Int64) throws -> StoredObject {
        let row = try #require(try index.objects(after: sequence - 1, limit: 1).first)
        return StoredObject(record: row.record, descriptor: try MemoryFile(name: "test").seal(), sequence: row.sequence)
    }

    private func select(
        _ hand: inout EvictionHand, _ wanted: Int64, _ visited: VisitedObjects = VisitedObjects(), except: Set<Int64> = []
    ) throws -> [Int64] {
        let (objects, failure) = hand.select(atLeast: wanted, from: index, visited: visited, except: except)
        #expect(failure == nil)
        return objects.map(\.sequence)
    }

    private func expect(
        _ hand: inout EvictionHand, _ wanted: Int64, _ visited: VisitedObjects = VisitedObjects(), except: Set<Int64> = [],
        selects expected: [Int64], _ location: SourceLocation = #_sourceLocation
    ) throws {
        let selected = try select(&hand, wanted, visited, except: except)
        #expect(selected == expected, sourceLocation: location)
    }

    @Test func handContinuesWhereItStopped() throws {
        try addObjects(5)
        var hand = EvictionHand(at: 0)
        try expect(&hand, 20, selects: [1, 2])
        #expect(hand.position == 2)
        try expect(&hand, 11, selects: [3, 4])
        var restarted = EvictionHand(at: hand.position)
        try expect(&restarted, 1, selects: [5])
    }

    @Test func handStartsAgainAtTheOldestObject() throws {
        try addObjects(3)
        var hand = EvictionHand(at: 2)
        // The rows of selected objects are still there; they are not selected twice.
        try expect(&hand, 1000, selects: [3, 1, 2])
        try expect(&hand, 10, except: [1, 2, 3], selects: [])
        var damaged = EvictionHand(at: -7)
        #expect(damaged.position == 0)
        try expect(&damaged, 10, selects: [1])
    }

    @Test func objectsThatAreAllInUseAreSelectedInTheSecondRound() throws {
        try addObjects(4)
        let visited = VisitedObjects()
        for sequence in Int64(1)...4 { visited.note(try object(sequence)) }
        var hand = EvictionHand(at: 2)
        try expect(&hand, 10, visited, selects: [3])
        #expect(hand.position == 3)
    }

    @Test func oneCallSelectsABoundedNumberOfObjects() throws {
        try addObjects(200)
        var hand = EvictionHand(at: 0)
        var selected: [Int64] = []
        while selected.count < 200 {
            let some = try select(&hand, .max, except: Set(selected))
            try #require((1...64).contains(some.count))
            selected += some
        }
        #expect(selected == Array(1...200))
    }

    @Test func handBeginsALapOnlyIfItHasClearedABit() throws {
        try addObjects(2)
        let visited = VisitedObjects()
        let object = try object(1)
        visited.note(object)
        #expect(visited.clear(1))
        var hand = EvictionHand(at: 0)
        _ = try select(&hand, 10, visited)
        visited.note(object)
        #expect(!visited.clear(1))
        visited.beginLap()
        visited.note(object)
        hand = EvictionHand(at: 0)
        try expect(&hand, 10, visited, selects: [2])
        visited.note(object)
        #expect(visited.clear(1))
    }

    @Test func bitsBeyondTheLimitReplaceAllOthers() throws {
        try addObjects(4)
        let visited = VisitedObjects(limit: 3)
        let objects = try (1...4).map { try object(Int64($0)) }
        for object in objects { visited.note(object) }
        #expect(!visited.clear(1))
        #expect(visited.clear(4))
        // A forgotten object reports its next use again.
        visited.note(objects[0])
        #expect(visited.clear(1))
    }

    @Test func unreadableIndexEndsTheSelectionWithItsError() throws {
        try addObjects(2)
        index.close()
        var hand = EvictionHand(at: 0)
        let (objects, failure) = hand.select(atLeast: 1, from: index, visited: VisitedObjects(), except: [])
        #expect(objects.isEmpty)
        #expect(failure?.isBroken == true)
    }
}

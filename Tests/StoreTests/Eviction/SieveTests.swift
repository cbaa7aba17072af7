import SystemIO
import TestSupport
import Testing

@testable import Store

/// SIEVE in its simplest form: an array from the oldest to the newest entry, and the key at which the hand stands.
private struct SieveModel {
    private struct Entry {
        let key: Int
        var value: Int
        var isVisited = false
    }

    private var queue: [Entry] = []
    private var hand: Int?
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    var count: Int { queue.count }
    var keys: [Int] { queue.map(\.key) }

    func peek(_ key: Int) -> Int? { queue.first { $0.key == key }?.value }

    mutating func use(_ key: Int) -> Int? {
        guard let index = queue.firstIndex(where: { $0.key == key }) else { return nil }
        queue[index].isVisited = true
        return queue[index].value
    }

    mutating func insert(_ value: Int, for key: Int) -> Int? {
        if let index = queue.firstIndex(where: { $0.key == key }) {
            defer { queue[index].value = value }
            return queue[index].value
        }
        var evicted: Int?
        if queue.count == limit {
            var index = queue.firstIndex { $0.key == hand } ?? 0
            while queue[index].isVisited {
                queue[index].isVisited = false
                index = (index + 1) % queue.count
            }
            hand = queue[index].key
            evicted = remove(queue[index].key)
        }
        queue.append(Entry(key: key, value: value))
        return evicted
    }

    /// A hand on a removed entry moves to the next newer one, or, behind the newest, back to the oldest.
    mutating func remove(_ key: Int) -> Int? {
        guard let index = queue.firstIndex(where: { $0.key == key }) else { return nil }
        if hand == key { hand = index + 1 < queue.count ? queue[index + 1].key : nil }
        return queue.remove(at: index).value
    }
}

@Suite("SIEVE evicts what was not used since the hand passed it") struct SieveTests {
    @Test(arguments: [1, 2, 3, 16], UInt64(0)..<10) func aTableEvictsExactlyWhatAModelEvicts(limit: Int, seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var table = SieveTable<Int, Int>(limit: limit)
        var model = SieveModel(limit: limit)
        for step in 0..<2_000 {
            let key = Int.random(in: 0..<limit * 2 + 2, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                let (used, expected) = (table.use(key), model.use(key))
                #expect(used == expected)
            case 4:
                let (removed, expected) = (table.remove(key), model.remove(key))
                #expect(removed == expected)
            case 5 where step % 100 == 5:
                let removed = table.removeAll { candidate, _ in candidate % 3 == 0 }
                var expected: [Int] = []
                for candidate in model.keys where candidate % 3 == 0 { expected += model.remove(candidate).map { [$0] } ?? [] }
                #expect(removed.sorted() == expected.sorted())
            default:
                let (removed, expected) = (table.insert(step, for: key), model.insert(step, for: key))
                #expect(removed == expected)
            }
            #expect(table.count == model.count && table.count <= limit)
        }
        for key in 0..<limit * 2 + 2 { #expect(table.peek(key) == model.peek(key)) }
    }

    @Test func peekingDoesNotProtectAnEntry() {
        var table = SieveTable<Int, Int>(limit: 2)
        _ = table.insert(10, for: 1)
        _ = table.insert(20, for: 2)
        #expect(table.peek(1) == 10)
        let first = table.insert(30, for: 3)
        #expect(first == 10)
        let used = table.use(2)
        #expect(used == 20)
        let second = table.insert(40, for: 4)
        #expect(second == 30)
    }

    // MARK: The hand over the objects on disk

    private func object(_ sequence: Int64) throws -> StoredObject {
        let record = ObjectRecord(
            id: .test("\(sequence)"), fileExtension: "mp4", length: 1,
            content: ContentDigest(digest: SourceDigest(of: [1]).digest), created: 0, facts: [])
        return StoredObject(record: record, descriptor: try MemoryFile(name: "test").seal(), sequence: sequence)
    }

    @Test func aClearedObjectReportsItsNextUse() throws {
        let visited = VisitedObjects()
        let object = try object(9)
        visited.note(object)
        visited.note(object)
        #expect(visited.clear(9))
        #expect(!visited.clear(9))
        // Within one lap an object reports only once, which costs a hit nothing.
        visited.note(object)
        #expect(!visited.clear(9))
        visited.beginLap()
        visited.note(object)
        #expect(visited.clear(9))
        visited.note(object)
        visited.reset()
        #expect(!visited.clear(9))
    }
}

import Testing

@testable import HTTP

@Suite("A reused list moves its elements out") struct ReusedListTests {
    /// Counts its instances.
    private final class Counted {
        let number: Int
        let living: Shared<Int>

        init(_ number: Int, _ living: Shared<Int>) {
            self.number = number
            self.living = living
            living.update { $0 += 1 }
        }

        deinit { living.update { $0 -= 1 } }
    }

    @Test func elementsAreDrainedOnceAndInOrder() {
        let living = Shared(0)
        let list = ReusedList<Counted>(capacity: 2)
        for round in 1...3 {
            for number in 0..<round * 5 { list.append(Counted(number, living)) }
            #expect(living.value == round * 5)
            var seen: [Int] = []
            list.drain { seen.append($0.number) }
            #expect(seen == Array(0..<round * 5))
            #expect(list.isEmpty)
            #expect(living.value == 0)
        }
    }

    @Test func elementsAppendedWhileDrainingStay() {
        let list = ReusedList<Int>(capacity: 1)
        (0..<20).forEach { list.append($0) }
        list.drain { number in
            for _ in 0..<3 { list.append(number) }
        }
        #expect(list.count == 60)
        var seen: [Int] = []
        list.drain { seen.append($0) }
        #expect(seen == (0..<20).flatMap { [$0, $0, $0] })
    }

    @Test func remainingElementsAreReleasedWithTheList() {
        let living = Shared(0)
        do {
            let list = ReusedList<Counted>(capacity: 4)
            (0..<10).forEach { list.append(Counted($0, living)) }
            #expect(living.value == 10)
        }
        #expect(living.value == 0)
    }
}

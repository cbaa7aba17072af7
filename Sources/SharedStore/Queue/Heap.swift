/// A binary heap: its least element is found at once, and inserted or removed in logarithmic time.
struct Heap<Element: Comparable> {
    /// The children of the element at `index` are at `2 * index + 1` and `2 * index + 2`, and not less than it.
    private var elements: [Element]

    init(_ elements: [Element] = []) {
        // A sorted array is a heap.
        self.elements = elements.sorted()
    }

    var count: Int { elements.count }
    var first: Element? { elements.first }

    mutating func insert(_ element: Element) {
        elements.append(element)
        var index = elements.count - 1
        while index > 0, elements[index] < elements[(index - 1) / 2] {
            elements.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    @discardableResult
    mutating func removeFirst() -> Element? {
        guard !elements.isEmpty else { return nil }
        elements.swapAt(0, elements.count - 1)
        let first = elements.removeLast()
        var index = 0
        while let child = leastChild(of: index), elements[child] < elements[index] {
            elements.swapAt(index, child)
            index = child
        }
        return first
    }

    private func leastChild(of index: Int) -> Int? {
        let (left, right) = (2 * index + 1, 2 * index + 2)
        guard left < elements.count else { return nil }
        return right < elements.count && elements[right] < elements[left] ? right : left
    }
}

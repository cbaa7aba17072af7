import Synchronization

/// An action that runs once at a time of the simulation, unless it is cancelled before.
final class SimulatedTimer: Sendable {
    private let action: Mutex<(@Sendable () -> Void)?>

    init(_ action: @escaping @Sendable () -> Void) {
        self.action = Mutex(action)
    }

    var isCancelled: Bool { action.withLock { $0 == nil } }

    func fire() {
        action.withLock { $0.take() }?()
    }

    func cancel() {
        _ = action.withLock { $0.take() }
    }
}

/// A reference to a timer that cancels it when it is released.
final class CancelledOnRelease: Sendable {
    private let timer: SimulatedTimer

    init(_ timer: SimulatedTimer) {
        self.timer = timer
    }

    deinit {
        timer.cancel()
    }
}

/// Timers in the order of their times; those of the same time in the order of their starts. A binary heap.
struct TimerQueue: Sendable {
    private struct Entry: Sendable {
        let due: UInt64
        let number: Int
        let timer: SimulatedTimer

        static func < (left: Entry, right: Entry) -> Bool {
            (left.due, left.number) < (right.due, right.number)
        }
    }

    private var heap: [Entry] = []
    private var lastNumber = 0

    mutating func insert(_ timer: SimulatedTimer, due: UInt64) {
        lastNumber += 1
        heap.append(Entry(due: due, number: lastNumber, timer: timer))
        var child = heap.count - 1
        while child > 0, heap[child] < heap[(child - 1) / 2] {
            heap.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Removes the timer with the earliest time, and those before it that were cancelled.
    mutating func popFirst() -> (due: UInt64, timer: SimulatedTimer)? {
        while let first = removeRoot() {
            if !first.timer.isCancelled { return (first.due, first.timer) }
        }
        return nil
    }

    private mutating func removeRoot() -> Entry? {
        guard let last = heap.popLast() else { return nil }
        guard let root = heap.first else { return last }
        heap[0] = last
        var parent = 0
        while true {
            var smallest = parent
            for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && heap[child] < heap[smallest] {
                smallest = child
            }
            if smallest == parent { return root }
            heap.swapAt(parent, smallest)
            parent = smallest
        }
    }
}

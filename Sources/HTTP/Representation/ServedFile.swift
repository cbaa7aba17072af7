internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// A file that is sent from the page cache, and what is known of its pages there. Any thread.
final class ServedFile: Sendable {
    /// The largest number of bytes that are checked, loaded and sent in one step.
    static let pieceSize = 1 << 20
    /// How long, in nanoseconds, a file that was found in the page cache is not checked again. The kernel evicts pages that were used more
    /// recently only if it has no others.
    private static let trust: UInt64 = 1_000_000_000

    let descriptor: SharedDescriptor
    private let length: Int
    /// Until when the whole file is taken to be in the page cache, by the coarse monotonic clock; 0 if it was not found there.
    private let trustedUntil = Atomic<UInt64>(0)

    init(_ descriptor: SharedDescriptor, length: Int) {
        self.descriptor = descriptor
        self.length = length
    }

    /// The first bytes of a range that are sent in one step.
    static func piece(of range: Range<Int>) -> Range<Int> { range.prefix(pieceSize) }

    /// Whether sending these bytes waits for no disk. The kernel may evict their pages between the check and the use, which makes
    /// the use wait.
    func isInPageCache(_ range: Range<Int>) -> Bool {
        let now = Self.now()
        if trustedUntil.load(ordering: .relaxed) > now { return true }
        guard check(range) else { return false }
        // One check of the whole file saves those of its ranges.
        if length <= Self.largestWhole, range == 0..<length || isWholeInPageCache {
            trustedUntil.store(now + Self.trust, ordering: .relaxed)
        }
        return true
    }

    /// Larger files are checked by the ranges that are sent: their check would take a loop too long.
    private static let largestWhole = 8 * pieceSize

    private var isWholeInPageCache: Bool {
        stride(from: 0, to: length, by: Self.pieceSize).allSatisfy { check($0..<min($0 + Self.pieceSize, length)) }
    }

    private func check(_ range: Range<Int>) -> Bool {
        clinux_is_in_page_cache(descriptor.number, Int64(range.lowerBound), range.count) != 0
    }

    /// Reads these bytes into the page cache. Blocks.
    func load(_ range: Range<Int>) {
        withUnsafeTemporaryAllocation(byteCount: 128 << 10, alignment: 16) { buffer in
            var position = range.lowerBound
            while position < range.upperBound {
                let space = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(range.upperBound - position))
                // An error shows when the bytes are sent.
                guard let read = try? descriptor.read(into: space, at: position), read > 0 else { return }
                position += read
            }
        }
    }

    private static func now() -> UInt64 {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &now)
        return UInt64(now.tv_sec) * 1_000_000_000 + UInt64(now.tv_nsec)
    }
}

/// The threads that read files into the page cache, so that no loop waits for a disk. They start with the first file that has to be
/// read. Any thread.
final class FileLoader: Sendable {
    private static let threadCount = 4

    private struct State {
        var threads: WorkThreads?
        var loads = 0
    }

    private let state = Mutex(State())

    /// Pieces that were not in the page cache since the start.
    var loads: Int { state.withLock { $0.loads } }

    /// Loads a piece of a file, and calls `done` on one of the threads.
    ///
    /// Each connection waits for one piece at most, which bounds the queue. Without threads, `done` is called at once, and sending
    /// the piece waits for the disk.
    func load(_ file: ServedFile, _ piece: Range<Int>, _ done: @escaping @Sendable () -> Void) {
        let threads = state.withLock { state in
            state.loads += 1
            let threads = state.threads ?? WorkThreads(count: Self.threadCount, limit: .max, name: "http-disk")
            state.threads = threads
            return threads
        }
        let isQueued = threads.submit {
            file.load(piece)
            done()
        }
        if !isQueued { done() }
    }

    deinit {
        guard let threads = state.withLock({ $0.threads.take() }) else { return }
        SystemThread.start(name: "http-disk-end") { threads.close() }?.detach()
    }
}

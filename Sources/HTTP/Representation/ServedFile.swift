internal import CLinux
internal import Glibc
internal import Synchronization
internal import SystemIO

/// A file sent from the page cache, with what is known about its cached pages. Any thread.
final class ServedFile: Sendable {
    /// The maximum number of bytes that are checked, loaded and sent in one step.
    static let pieceSize = 1 << 20
    /// How long, in nanoseconds, a file found in the page cache is not checked again. The kernel evicts recently used pages
    /// only if it has no others.
    private static let trust: UInt64 = 1_000_000_000

    let descriptor: SharedDescriptor
    /// Called when the file turns out to be too short or unreadable while it is sent.
    let onDamage: (@Sendable () -> Void)?
    private let length: Int
    /// When the assumption that the whole file is in the page cache expires, by the coarse monotonic clock; 0 initially.
    private let trustedUntil = Atomic<UInt64>(0)

    init(_ descriptor: SharedDescriptor, length: Int, onDamage: (@Sendable () -> Void)? = nil) {
        self.descriptor = descriptor
        self.length = length
        self.onDamage = onDamage
    }

    /// Returns the first piece of a range that is sent in one step.
    static func piece(of range: Range<Int>) -> Range<Int> { range.prefix(pieceSize) }

    /// Whether these bytes can be sent without waiting for a disk. The kernel may evict their pages between this check and
    /// their use, which then waits.
    func isInPageCache(_ range: Range<Int>) -> Bool {
        let now = Self.now()
        if trustedUntil.load(ordering: .relaxed) > now { return true }
        guard check(range) else { return false }
        // Checking the whole file once saves checking its ranges.
        if length <= Self.largestWhole, range == 0..<length || isWholeInPageCache {
            trustedUntil.store(now + Self.trust, ordering: .relaxed)
        }
        return true
    }

    /// Larger files are checked only by the ranges that are sent: a check of the whole file would block the loop too long.
    private static let largestWhole = 8 * pieceSize

    private var isWholeInPageCache: Bool {
        stride(from: 0, to: length, by: Self.pieceSize).allSatisfy { check($0..<min($0 + Self.pieceSize, length)) }
    }

    private func check(_ range: Range<Int>) -> Bool {
        clinux_is_in_page_cache(descriptor.number, Int64(range.lowerBound), range.count) != 0
    }

    /// Reads the range into the page cache. Blocks.
    func load(_ range: Range<Int>) {
        withUnsafeTemporaryAllocation(byteCount: 128 << 10, alignment: 16) { buffer in
            var position = range.lowerBound
            while position < range.upperBound {
                let space = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(range.upperBound - position))
                // Sending the bytes reports the error.
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

/// The threads that read files into the page cache, so that no loop waits for a disk. They are started by the first file that
/// must be read. Any thread.
final class FileLoader: Sendable {
    private static let threadCount = 4

    private struct State {
        var threads: WorkThreads?
        var loads = 0
    }

    private let state = Mutex(State())

    /// The number of pieces since the start that were not in the page cache.
    var loads: Int { state.withLock { $0.loads } }

    /// Loads a piece of a file, and calls `done` on one of the threads.
    ///
    /// Each connection waits for at most one piece, which bounds the queue. If no thread could be started, `done` is called at
    /// once, and sending the piece waits for the disk.
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

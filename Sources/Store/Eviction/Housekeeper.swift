internal import Glibc
internal import Synchronization
internal import SystemIO

/// The work of the housekeeping thread: repairs, sweeping, comparison of files and rows, eviction, syncing, scrubbing.
final class Housekeeper: Sendable {
    private let context: CacheContext
    private let finder: RenditionFinder
    private let evictor: Evictor
    private let scan = Mutex(OrphanScan())
    private let scrubber = Mutex(ScrubProgress())
    /// The monotonic time from which a shortage of descriptors is reported again.
    private let nextReport = Mutex<UInt64>(0)

    init(_ context: CacheContext, finder: RenditionFinder, evictor: Evictor) {
        self.context = context
        self.finder = finder
        self.evictor = evictor
    }

    func runRound() {
        if DescriptorLimit.isShort() { releaseDescriptors() }
        let isEnding = { self.context.housekeeping.isEnding }
        context.checkPlace()
        evictor.keepLimits()
        if context.repair() {
            context.hot.removeAll()
            context.verified.removeAll()
        }
        var sweeps = 0
        while !isEnding(), sweeps < Self.sweepsPerRound, context.changes.withLock({ $0.sweep() }) { sweeps += 1 }
        let scanned = scan.withLock { $0.continueScan(of: context, unless: isEnding) }
        context.counters.update { $0.orphans += scanned.removed }
        context.changes.withLock { $0.removeDonePurges() }
        context.sync()
        context.directory.keepReserve(leaving: context.minFreeBytes)
        scrub()
        // Unfinished work continues in the next round at once, after the other tasks.
        if sweeps == Self.sweepsPerRound || scanned.continues { context.housekeeping.wake() }
    }

    private static let sweepsPerRound = 32

    /// Closes renditions in use, so that connections and conversions get descriptors.
    private func releaseDescriptors() {
        context.hot.trim()
        let now = context.clock.monotonicNanoseconds()
        let isDue = nextReport.withLock { next in
            guard now >= next else { return false }
            next = now + Self.reportInterval
            return true
        }
        if isDue { context.report(.descriptorsExhausted(limit: DescriptorLimit.current)) }
    }

    /// The shortest time between two reports of a lack of descriptors: a minute, in nanoseconds.
    private static let reportInterval: UInt64 = 60_000_000_000

    /// Compares stored files with their SHA-256, at a bounded rate. After a pass, the next round compares files and rows.
    private func scrub() {
        let rate = context.configuration.scrubBytesPerSecond
        guard rate > 0 else { return }
        let now = context.clock.monotonicNanoseconds()
        guard scrubber.withLock({ $0.credit(rate, now: now) }) else { return }
        while !context.housekeeping.isEnding {
            let cursor = scrubber.withLock(\.cursor)
            guard let row = context.query({ try $0.objects(after: cursor, limit: 1) })?.first else {
                scrubber.withLock { $0.endPass(now: now) }
                context.changes.withLock { $0.isScanDue = true }
                return
            }
            verify(row)
            let continues = scrubber.withLock { scrubber in
                scrubber.spend(max(row.record.length, Self.costOfOpening), through: row.sequence)
                return scrubber.credit > 0
            }
            if !continues { return }
        }
    }

    /// A file counts as at least this many bytes. Otherwise the check of a million small files would take most of a core for
    /// minutes.
    private static var costOfOpening: Int64 { 64 << 10 }

    private func verify(_ row: ObjectRow) {
        // A file that cannot be opened is not damaged; a lookup or the next start handles a missing file.
        guard let file = try? context.directory.objects.open(row.record.name),
            let (digest, length) = try? ContentDigest.measure(file)
        else { return }
        // This read must not displace clients' data from the page cache.
        if context.hot.peek(row.record.id) == nil { posix_fadvise(file.number, 0, 0, POSIX_FADV_DONTNEED) }
        if digest == row.record.content, Int64(length) == row.record.length {
            context.verified.insert(row.sequence)
        } else {
            finder.removeCorrupt(row)
        }
    }
}

/// The progress of the background check of all files, and the token bucket that limits its reads.
struct ScrubProgress: Sendable {
    /// The sequence of the last verified object.
    private(set) var cursor: Int64 = 0
    /// Bytes that may be read now; negative after a larger file.
    private(set) var credit: Int64 = 0
    private var creditedAt: UInt64?
    private var restsUntil: UInt64 = 0

    /// The pause between two passes: a day, in nanoseconds.
    private static let rest: UInt64 = 86_400 * 1_000_000_000

    /// Adds credit for the time since the last call, up to a second. Returns false during a pause or without credit.
    mutating func credit(_ bytesPerSecond: Int64, now: UInt64) -> Bool {
        let elapsed = min(now - min(creditedAt ?? now, now), 1_000_000_000)
        creditedAt = now
        credit = min(credit + bytesPerSecond / 1000 * Int64(elapsed / 1_000_000), bytesPerSecond)
        return now >= restsUntil && credit > 0
    }

    mutating func spend(_ bytes: Int64, through sequence: Int64) {
        credit -= bytes
        cursor = sequence
    }

    mutating func endPass(now: UInt64) {
        cursor = 0
        restsUntil = now + Self.rest
    }
}

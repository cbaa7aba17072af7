/// How far the background check of all files has come, and how much it may read.
struct Scrubber: Sendable {
    /// The sequence of the object it checked last.
    var cursor: Int64 = 0
    /// Bytes it may read now; below zero after a file larger than that.
    private(set) var credit: Int64 = 0
    private var creditedAt: UInt64?
    private var restsUntil: UInt64 = 0

    /// From the end of one pass to the beginning of the next: a day. Bits rot slowly.
    private static let rest: UInt64 = 86_400 * 1_000_000_000

    /// Credits the time since the last call, at most a second's worth. False while it rests.
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
